# Softmaxes and products that are no attention: nothing may be reported.
import torch
from torch.nn.functional import cross_entropy, elu, linear, softmax

x = torch.randn(2, 32, 64, requires_grad=True)


def classifier():
    head, logits = torch.randn(10, 64, requires_grad=True), None
    logits = linear(x.mean(1), head)
    cross_entropy(logits, torch.tensor([1, 2])).backward()
    softmax(linear(x, head), dim=-1).sum().backward()


def router():
    """Mixture of experts: softmax over experts weighs the experts' outputs."""
    gate, experts = torch.randn(64, 4, requires_grad=True), torch.randn(4, 64, 64, requires_grad=True)
    weights = softmax(x.reshape(-1, 64) @ gate, dim=-1)
    outputs = torch.einsum("td,edf->tef", x.reshape(-1, 64), experts)
    torch.einsum("te,tef->tf", weights, outputs).sum().backward()


def embedding_table():
    """Softmax over a vocabulary, then the expected embedding: (tokens, vocabulary) weights are no scores of a sequence."""
    table = torch.randn(100, 64, requires_grad=True)
    (softmax(x @ table.T, dim=-1) @ table).sum().backward()


def linear_attention():
    q, k, v = (torch.randn(2, 4, 32, 16, requires_grad=True) for _ in range(3))
    state = (elu(k) + 1).transpose(-2, -1) @ v
    ((elu(q) + 1) @ state).sum().backward()


def softmax_linear_attention():
    """Efficient attention: softmax on q and on k apart, no Sq x Sk product anywhere."""
    q, k, v = (torch.randn(2, 4, 32, 16, requires_grad=True) for _ in range(3))
    (q.softmax(-1) @ (k.softmax(-2).transpose(-2, -1) @ v)).sum().backward()


for control in (classifier, router, embedding_table, linear_attention, softmax_linear_attention):
    control()
