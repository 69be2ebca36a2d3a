"""Very many kinds of attention call: SITES call paths of DEPTH frames each, every one with SHAPES lengths and four refusals."""
import sys

import torch
from torch.nn.functional import scaled_dot_product_attention  # noqa: F401 - what the innermost function calls

depth, sites, shapes = map(int, sys.argv[1:])
torch.set_num_threads(1)


def chain(site):
    """A function over `depth` others of its own, named as generated code names them."""
    names = [f"level_{level}_of_site_{site}_with_the_long_name_of_generated_code" for level in range(depth)]
    calls = [f"{name}(q, k, v, mask)" for name in names[1:]]
    calls.append("scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1)")
    source = "\n" * (depth * 2 * site) + "".join(f"def {name}(q, k, v, mask):\n    return {call}\n" for name, call in zip(names, calls))
    exec(compile(source, __file__.replace("kinds.py", "generated/kinds.py"), "exec"), globals())
    return globals()[names[0]]


for site in range(sites):
    attend = chain(site)
    for length in range(4, 4 + shapes):
        q = torch.randn(2, 3, 16, length, requires_grad=True).transpose(2, 3)
        k, v = torch.randn(2, 3, length, 16, requires_grad=True), torch.randn(2, 3, length, 8, requires_grad=True)
        attend(q, k, v, torch.randn(length, length, requires_grad=True)).sum().backward()
