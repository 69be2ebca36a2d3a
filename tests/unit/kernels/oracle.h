// Attention written out in float64, one number after the other: slow and obviously right.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/tiled/call.h"
#include "kernels/tiled/random.h"

namespace attntrace::tiled {

// Contiguous (batch, heads, rows, columns); a size of one is broadcast when read.
struct Array {
  int64_t size[4] = {0, 0, 0, 0};
  std::vector<double> data;

  Array() = default;
  Array(int64_t b, int64_t h, int64_t r, int64_t c) : size{b, h, r, c}, data(static_cast<size_t>(b * h * r * c)) {}
  size_t At(int64_t b, int64_t h, int64_t r, int64_t c) const {
    const auto clip = [this](int64_t index, int dim) { return size[dim] == 1 ? 0 : index; };
    return static_cast<size_t>(((clip(b, 0) * size[1] + clip(h, 1)) * size[2] + clip(r, 2)) * size[3] + clip(c, 3));
  }
  double& operator()(int64_t b, int64_t h, int64_t r, int64_t c) { return data[At(b, h, r, c)]; }
  double operator()(int64_t b, int64_t h, int64_t r, int64_t c) const { return data[At(b, h, r, c)]; }
};

struct Gradients {
  Array q, k, v, bias;
  double slope = 0;  // largest sum of |grad_out v| of one score: what the difference that makes a score's gradient is taken of
};

struct Problem {
  Array q, k, v, bias;  // bias without data: none
  bool bias_is_bool = false;
  bool causal = false;
  double scale = 1, dropout = 0;
  uint64_t seed = 0;
};

// `grad_out` may be null: forward only.
inline Array Attend(const Problem& p, const Array* grad_out, Gradients* gradients) {
  const int64_t batch = p.q.size[0], heads = p.q.size[1], rows = p.q.size[2], columns = p.k.size[2],
                group = heads / p.k.size[1];
  Array out(batch, heads, rows, p.v.size[3]);
  if (gradients != nullptr) {
    gradients->q = Array(batch, heads, rows, p.q.size[3]);
    gradients->k = Array(batch, p.k.size[1], columns, p.q.size[3]);
    gradients->v = Array(batch, p.k.size[1], columns, p.v.size[3]);
    if (!p.bias.data.empty()) gradients->bias = Array(p.bias.size[0], p.bias.size[1], p.bias.size[2], p.bias.size[3]);
  }
  std::vector<double> weight(static_cast<size_t>(columns)), kept(weight), slope(weight);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t r = 0; r < rows; ++r) {
        double most = -INFINITY, total = 0;
        for (int64_t c = 0; c < columns; ++c) {
          double score = 0;
          for (int64_t d = 0; d < p.q.size[3]; ++d) score += p.q(b, h, r, d) * p.k(b, h / group, c, d);
          score *= p.scale;
          if (!p.bias.data.empty()) {
            const double bias = p.bias(b, h, r, c);
            score = p.bias_is_bool ? (bias != 0 ? score : -INFINITY) : score + bias;
          }
          if (p.causal && c > r) score = -INFINITY;
          weight[c] = score;
          most = std::fmax(most, score);
        }
        for (double& w : weight) total += w = most == -INFINITY ? 0 : std::exp(w - most);
        for (int64_t c = 0; c < columns; ++c) {
          if (total > 0) weight[c] /= total;
          const uint64_t row = static_cast<uint64_t>((b * heads + h) * rows + r);
          const bool keep = p.dropout == 0 || Kept(p.seed, row, static_cast<uint64_t>(c), DropThreshold(p.dropout));
          kept[c] = keep ? 1 / (1 - p.dropout) : 0;
          for (int64_t d = 0; d < p.v.size[3]; ++d) out(b, h, r, d) += weight[c] * kept[c] * p.v(b, h / group, c, d);
        }
        if (gradients == nullptr) continue;
        double mean = 0;
        for (int64_t c = 0; c < columns; ++c) {
          slope[c] = 0;
          double size = 0;
          for (int64_t d = 0; d < p.v.size[3]; ++d) {
            slope[c] += (*grad_out)(b, h, r, d) * p.v(b, h / group, c, d) * kept[c];
            size += std::abs((*grad_out)(b, h, r, d) * p.v(b, h / group, c, d) * kept[c]);
            gradients->v(b, h / group, c, d) += weight[c] * kept[c] * (*grad_out)(b, h, r, d);
          }
          mean += slope[c] * weight[c];
          gradients->slope = std::fmax(gradients->slope, size);
        }
        for (int64_t c = 0; c < columns; ++c) {
          const double score_gradient = weight[c] * (slope[c] - mean);
          for (int64_t d = 0; d < p.q.size[3]; ++d) {
            gradients->q(b, h, r, d) += p.scale * score_gradient * p.k(b, h / group, c, d);
            gradients->k(b, h / group, c, d) += p.scale * score_gradient * p.q(b, h, r, d);
          }
          if (!p.bias.data.empty()) gradients->bias(b, h, r, c) += score_gradient;
        }
      }
    }
  }
  return out;
}

}  // namespace attntrace::tiled
