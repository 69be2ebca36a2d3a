# Autograd functions whose forward is fused. Their backwards: written by hand with the scores stored, also where a checkpoint runs
# the function again and where one function holds two calls; fused; in tiles; and run again with gradients on, as a checkpoint does.
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

SCALE = 16 ** -0.5


def dense(q, k, v, grad):
    weights = torch.softmax(q @ k.mT * SCALE, -1)
    v_grad = weights.mT @ grad
    score_grad = grad @ v.mT
    score_grad = weights * (score_grad - (weights * score_grad).sum(-1, keepdim=True)) * SCALE
    return score_grad @ k, score_grad.mT @ q, v_grad


class ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx, grad):
        return dense(*ctx.saved_tensors, grad)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        first = F.scaled_dot_product_attention(q, k, v)
        ctx.save_for_backward(q, k, v, first)
        return F.scaled_dot_product_attention(first, k, v)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, first = ctx.saved_tensors
        first_grad, k_grad, v_grad = dense(first, k, v, grad)
        return tuple(sum(pair) for pair in zip(dense(q, k, v, first_grad), (0, k_grad, v_grad)))


class Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
        ctx.save_for_backward(q, k, v, out, logsumexp)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, logsumexp = ctx.saved_tensors
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(grad, q, k, v, out, logsumexp, 0.0, False)


class Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
        ctx.save_for_backward(q, k, v, out, logsumexp)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, logsumexp = ctx.saved_tensors
        delta = (grad * out).sum(-1, keepdim=True)
        grads = [torch.zeros_like(tensor) for tensor in (q, k, v)]
        for i in range(0, q.size(2), 16):
            for j in range(0, k.size(2), 16):
                a, b = slice(i, i + 16), slice(j, j + 16)
                weights = torch.exp(q[:, :, a] @ k[:, :, b].mT * SCALE - logsumexp[:, :, a, None])
                score_grad = weights * (grad[:, :, a] @ v[:, :, b].mT - delta[:, :, a]) * SCALE
                grads[0][:, :, a] += score_grad @ k[:, :, b]
                grads[1][:, :, b] += score_grad.mT @ q[:, :, a]
                grads[2][:, :, b] += weights.mT @ grad[:, :, a]
        return tuple(grads)


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx, grad):
        inputs = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
        with torch.enable_grad():
            out = F.scaled_dot_product_attention(*inputs)
        return torch.autograd.grad(out, inputs, grad)


def leaves():
    torch.manual_seed(0)
    return [torch.randn(2, 4, 64, 16, requires_grad=True) for _ in range(3)]


def gradients(attention):
    inputs = leaves()
    attention(*inputs).sum().backward()  # a gradient without strides
    return [tensor.grad for tensor in inputs]


plain = gradients(F.scaled_dot_product_attention)
for same in (gradients(ByHand.apply),
             gradients(lambda *inputs: checkpoint(ByHand.apply, *inputs, use_reentrant=True)),
             gradients(Fused.apply),
             gradients(Tiled.apply),
             gradients(Again.apply)):
    torch.testing.assert_close(same, plain)
twice = gradients(lambda q, k, v: F.scaled_dot_product_attention(F.scaled_dot_product_attention(q, k, v), k, v))
torch.testing.assert_close(gradients(Twice.apply), twice)
