// Dropout without memory: whether a probability is kept follows from the seed and its place alone, so the backward pass asks
// again. Philox 4x32-10 (Salmon et al., 2011), one block for four neighbours in a row. Shared by CPU and CUDA.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define ATTNTRACE_BOTH __host__ __device__ __forceinline__
#else
#define ATTNTRACE_BOTH inline __attribute__((always_inline))
#endif

namespace attntrace::tiled {

struct RandomBlock {
  uint32_t word[4];
};

ATTNTRACE_BOTH RandomBlock Philox(uint64_t seed, uint64_t row, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(row), c3 = static_cast<uint32_t>(row >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c0, b = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    const uint32_t n0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// `row` is (batch * heads + head) * seq_q + i. Kept where the word is at least this.
ATTNTRACE_BOTH uint32_t DropThreshold(double dropout) {
  const double threshold = dropout * 4294967296.0;
  return threshold >= 4294967295.0 ? 4294967295u : static_cast<uint32_t>(threshold);
}

ATTNTRACE_BOTH bool Kept(uint64_t seed, uint64_t row, uint64_t column, uint32_t threshold) {
  return Philox(seed, row, column / 4).word[column % 4] >= threshold;
}

}  // namespace attntrace::tiled
