// A program that links LibTorch, has no interpreter, and trains through attention: fused twice, and once with dropout, which
// takes the math backend.
#include <ATen/ATen.h>
#include <stdio.h>

#include <cstdlib>

at::Tensor Attend(const at::Tensor& x, double dropout) {
  return at::scaled_dot_product_attention(x, x, x, std::nullopt, dropout, /*is_causal=*/true);
}

int main(int argc, char** argv) {
  const at::Tensor x = at::rand({1, 2, 32, 16}).requires_grad_(true);
  for (double dropout : {0.0, 0.0, 0.1}) Attend(x, dropout).sum().backward();
  printf("%d\n", x.grad().defined());
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
