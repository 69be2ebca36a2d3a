// Our own kernel against the oracle, over shapes, types, strides, masks and flags drawn at random. Built twice: with the CPU
// kernel, and with the CUDA kernel's source on the CPU (tiled_cuda_emulated.cc), which is slow and gets fewer trials.
#include <algorithm>
#include <random>
#include <string>

#include "kernels/tiled/call.h"
#include "tests/unit/catch.h"
#include "tests/unit/kernels/oracle.h"

namespace attntrace::tiled {
namespace {

using Random = std::mt19937;

uint16_t Rounded16(double value, Type type) {  // bfloat16 by truncation of a value that is exact there; float16 likewise
  if (type == Type::kBFloat16) return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, static_cast<float>(value)) >> 16);
  const uint32_t bits = __builtin_bit_cast(uint32_t, static_cast<float>(value));
  if (std::isinf(value)) return value > 0 ? 0x7C00 : 0xFC00;
  if ((bits & 0x7FFFFFFF) == 0) return static_cast<uint16_t>(bits >> 16);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits & 0x7FFFFFFF) - 0x38000000) >> 13));
}

double Widened16(uint16_t bits, Type type) {
  if (type == Type::kBFloat16) return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Storage of an Array in some type and layout.
struct Buffer {
  std::vector<unsigned char> bytes;
  Operand operand{};

  // `order`: dimensions from the slowest to the fastest. Sizes of one get stride 0.
  Buffer(const Array& from, Type type, const int (&order)[4], int64_t spread = 1) {
    int64_t step = spread;
    for (int i = 3; i >= 0; --i) {
      operand.stride[order[i]] = from.size[order[i]] == 1 ? 0 : step;
      step *= from.size[order[i]];
    }
    operand.type = type;
    bytes.resize(static_cast<size_t>(step + 1) * BytesOf(type));
    operand.data = bytes.data();
    Each(from, [&](int64_t at, double value) {
      switch (type) {
        case Type::kFloat32:
          reinterpret_cast<float*>(bytes.data())[at] = static_cast<float>(value);
          break;
        case Type::kFloat64:
          reinterpret_cast<double*>(bytes.data())[at] = value;
          break;
        case Type::kBool:
          bytes[static_cast<size_t>(at)] = value != 0;
          break;
        default:
          reinterpret_cast<uint16_t*>(bytes.data())[at] = Rounded16(value, type);
      }
    });
  }

  template <typename F>
  void Each(const Array& shape, F visit) const {
    size_t n = 0;
    for (int64_t b = 0; b < shape.size[0]; ++b)
      for (int64_t h = 0; h < shape.size[1]; ++h)
        for (int64_t r = 0; r < shape.size[2]; ++r)
          for (int64_t c = 0; c < shape.size[3]; ++c, ++n)
            visit(b * operand.stride[0] + h * operand.stride[1] + r * operand.stride[2] + c * operand.stride[3],
                  shape.data.empty() ? 0.0 : shape.data[n]);
  }

  double Read(int64_t at) const {
    switch (operand.type) {
      case Type::kFloat32:
        return reinterpret_cast<const float*>(bytes.data())[at];
      case Type::kFloat64:
        return reinterpret_cast<const double*>(bytes.data())[at];
      default:
        return Widened16(reinterpret_cast<const uint16_t*>(bytes.data())[at], operand.type);
    }
  }

  // Largest difference, relative to the largest number expected, or to `scale` where what was subtracted is larger.
  double Error(const Array& expected, double scale = 1e-3) const {
    double most = 0;
    Each(expected, [&](int64_t at, double value) {
      const double difference = std::abs(Read(at) - value);
      most = difference <= most ? most : difference;  // a NaN comes through
      scale = std::max(scale, std::abs(value));
    });
    return most / scale;
  }
};

constexpr int kPlain[4] = {0, 1, 2, 3}, kRowsFirst[4] = {0, 2, 1, 3}, kStridedHead[4] = {0, 1, 3, 2};

// Values that every type holds exactly.
Array Draw(Random* random, int64_t b, int64_t h, int64_t r, int64_t c) {
  Array array(b, h, r, c);
  std::uniform_int_distribution<int> value(-64, 64);
  for (double& x : array.data) x = value(*random) / 32.0;
  return array;
}

struct Trial {
  Problem problem;
  Type type = Type::kFloat32;
  const int (*order)[4] = &kPlain;
  int threads = 1;
  std::string text;
};

Trial DrawTrial(Random* random) {
  const auto pick = [random](std::initializer_list<int64_t> choices) {
    return *(choices.begin() + std::uniform_int_distribution<size_t>(0, choices.size() - 1)(*random));
  };
  Trial trial;
  Problem& p = trial.problem;
  const int64_t batch = pick({1, 2}), heads_kv = pick({1, 2, 3}), heads = heads_kv * pick({1, 1, 2, 4});
  const int64_t rows = pick({1, 5, 63, 64, 65, 130}), columns = pick({1, 7, 64, 127, 128, 129, 200, rows});
  const int64_t dim = pick({1, 7, 16, 32, 64, 80}), dim_v = pick({dim, dim, 16, 24});
  p.q = Draw(random, batch, heads, rows, dim);
  p.k = Draw(random, batch, heads_kv, columns, dim);
  p.v = Draw(random, batch, heads_kv, columns, dim_v);
  const int64_t mask = pick({0, 0, 1, 2});
  if (mask != 0) {
    p.bias = Draw(random, pick({1, batch}), pick({1, heads}), pick({1, rows, rows}), pick({columns, columns, 1}));
    p.bias_is_bool = mask == 1;
    if (p.bias_is_bool) {
      for (double& x : p.bias.data) x = x > -1;
    } else if (pick({0, 1}) != 0) {
      for (double& x : p.bias.data) x = x > -1.5 ? x : -INFINITY;
    }
  }
  p.causal = pick({0, 0, 1}) != 0;
  p.scale = pick({0, 1}) != 0 ? 1 / std::sqrt(static_cast<double>(dim)) : 0.05;
  p.dropout = pick({0, 0, 1}) != 0 ? 0.25 : 0;
  p.seed = (*random)();
  const int64_t type = pick({0, 0, 1, 2, 3});
  trial.type = type == 0 ? Type::kFloat32 : type == 1 ? Type::kFloat64 : type == 2 ? Type::kFloat16 : Type::kBFloat16;
  const int64_t order = pick({0, 1, 2});
  trial.order = order == 0 ? &kPlain : order == 1 ? &kRowsFirst : &kStridedHead;
  trial.threads = static_cast<int>(pick({1, 2, 3}));
  for (int64_t n : {batch, heads, heads_kv, rows, columns, dim, dim_v}) trial.text += std::to_string(n) + " ";
  trial.text += "mask " + std::to_string(mask) + " causal " + std::to_string(p.causal) + " dropout " +
                std::to_string(p.dropout) + " type " + std::to_string(type) + " order " + std::to_string(order) + " threads " +
                std::to_string(trial.threads);
  if (mask != 0) {
    for (int64_t n : p.bias.size) trial.text += " " + std::to_string(n);
  }
  return trial;
}

struct Errors {
  double out, q, k, v, bias;
};

Errors Run(const Trial& trial) {
  const Problem& p = trial.problem;
  Random random(7);
  const Array grad = Draw(&random, p.q.size[0], p.q.size[1], p.q.size[2], p.v.size[3]);
  Gradients gradients;
  const Array out = Attend(p, &grad, &gradients);

  const auto zeros = [](Array like) {
    std::fill(like.data.begin(), like.data.end(), 0);
    return like;
  };
  const Buffer q(p.q, trial.type, *trial.order, trial.order == &kStridedHead ? 2 : 1), k(p.k, trial.type, *trial.order),
      v(p.v, trial.type, kRowsFirst);
  const Buffer grad_out(grad, trial.type, *trial.order), result(zeros(out), trial.type, kRowsFirst);
  const Buffer gq(zeros(p.q), trial.type, kPlain), gk(zeros(p.k), trial.type, kPlain), gv(zeros(p.v), trial.type, kPlain);
  const Type bias_type = p.bias_is_bool ? Type::kBool : trial.type;
  const Array none(1, 1, 1, 1);
  const Buffer bias(p.bias.data.empty() ? none : p.bias, bias_type, kPlain);
  const Buffer gbias(zeros(p.bias.data.empty() ? none : p.bias), trial.type, kPlain);
  std::vector<double> lse(out.data.size() + 1);

  Call call{};
  call.batch = p.q.size[0], call.heads = p.q.size[1], call.heads_kv = p.k.size[1], call.seq_q = p.q.size[2];
  call.seq_kv = p.k.size[2], call.dim = p.q.size[3], call.dim_v = p.v.size[3];
  call.scale = p.scale, call.dropout = p.dropout, call.seed = p.seed, call.causal = p.causal, call.threads = trial.threads;
  call.q = q.operand, call.k = k.operand, call.v = v.operand, call.out = result.operand, call.lse = lse.data();
  if (!p.bias.data.empty()) call.mask = bias.operand;
  std::vector<char> space(CpuWorkspace(call, false) + 64);
  call.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(space.data()) + 63) / 64 * 64);
  CpuForward(call);

  call.grad_out = grad_out.operand, call.grad_q = gq.operand, call.grad_k = gk.operand, call.grad_v = gv.operand;
  const bool bias_gradient = !p.bias.data.empty() && !p.bias_is_bool;
  if (bias_gradient) call.grad_mask = gbias.operand;
  std::vector<char> backward_space(CpuWorkspace(call, true) + 64);
  call.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(backward_space.data()) + 63) / 64 * 64);
  CpuBackward(call);
  const double slope = std::max(gradients.slope, 1e-3);
  return {result.Error(out), gq.Error(gradients.q, slope * p.scale), gk.Error(gradients.k, slope * p.scale),
          gv.Error(gradients.v), bias_gradient ? gbias.Error(gradients.bias, slope) : 0};
}

// 16 bits: what is stored is rounded once, and the gradient rests on an output that was too; its errors add up over the rows.
double Bound(Type type) {
  return type == Type::kFloat64 ? 1e-13 : type == Type::kFloat32 ? 2e-5 : type == Type::kFloat16 ? 5e-3 : 4e-2;
}

}  // namespace

TEST_CASE("the tiled kernel is right to float64 math, forward and gradients") {
  Random random(20);
  for (int i = 0; i < ATTNTRACE_TRIALS; ++i) {
    const Trial trial = DrawTrial(&random);
    const Errors errors = Run(trial);
    INFO("trial " << i << ": " << trial.text);
    const double bound = Bound(trial.type);
    CHECK(errors.out <= bound);
    CHECK(errors.q <= bound);
    CHECK(errors.k <= bound);
    CHECK(errors.v <= bound);
    CHECK(errors.bias <= bound);
  }
}

TEST_CASE("a row that sees nothing gives zeros and no NaN") {
  Trial trial;
  Random random(3);
  trial.problem.q = Draw(&random, 1, 2, 70, 16);
  trial.problem.k = Draw(&random, 1, 2, 150, 16);
  trial.problem.v = Draw(&random, 1, 2, 150, 16);
  trial.problem.bias = Array(1, 1, 70, 150);
  trial.problem.bias_is_bool = true;
  for (int64_t r = 1; r < 70; ++r) trial.problem.bias(0, 0, r, 149) = 1;
  const Errors errors = Run(trial);
  CHECK(errors.out <= 1e-5);
  CHECK(errors.q <= 1e-5);
  CHECK(errors.k <= 1e-5);
}

TEST_CASE("no key at all gives zeros") {
  Trial trial;
  Random random(3);
  trial.problem.q = Draw(&random, 2, 2, 5, 16);
  trial.problem.k = Array(2, 2, 0, 16);
  trial.problem.v = Array(2, 2, 0, 8);
  const Errors errors = Run(trial);
  CHECK(errors.out == 0);
  CHECK(errors.q == 0);
}

TEST_CASE("workspace does not grow with the square of the length") {
  for (Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat64}) {
    Call call{};
    call.batch = 1, call.heads = call.heads_kv = 8, call.dim = call.dim_v = 64, call.threads = 2;
    call.q.type = call.grad_q.type = type, call.q.stride[3] = call.grad_q.stride[3] = 1;
    call.grad_q.data = &call;
    size_t forward[2], backward[2];
    for (int i = 0; i < 2; ++i) {
      call.seq_q = call.seq_kv = 4096 << i;
      forward[i] = CpuWorkspace(call, false), backward[i] = CpuWorkspace(call, true);
    }
    CHECK(forward[1] == forward[0]);
    CHECK(backward[1] <= 2 * backward[0]);
  }
}

TEST_CASE("dropout keeps what it should, and the same again") {
  const uint32_t threshold = DropThreshold(0.25);
  int64_t kept = 0;
  for (uint64_t row = 0; row < 100; ++row) {
    for (uint64_t column = 0; column < 1000; ++column) kept += Kept(99, row, column, threshold);
  }
  CHECK(std::abs(static_cast<double>(kept) / 1e5 - 0.75) < 0.01);
  CHECK(Philox(0, 0, 0).word[0] == 0x6627e8d5u);  // the published test vector: key 0, counter 0
}

}  // namespace attntrace::tiled
