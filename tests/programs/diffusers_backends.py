# A Flux transformer of the real diffusers: a training step with its native backend, then the forward with its flex one, which calls
# flex_attention plainly; and both called by hand, with a causal mask.
# requires: diffusers==0.42.1 torch==2.11
# with: callers
# timeout: 400
import torch
from diffusers import FluxTransformer2DModel
from diffusers.models.attention_dispatch import dispatch_attention_fn

torch.manual_seed(0)
model = FluxTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
                               num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=[4, 4, 8])
batch = dict(hidden_states=torch.randn(1, 64, 4), encoder_hidden_states=torch.randn(1, 16, 32), pooled_projections=torch.randn(1, 32),
             timestep=torch.ones(1), img_ids=torch.zeros(64, 3), txt_ids=torch.zeros(16, 3), return_dict=False)
model(**batch)[0].sum().backward()
model.set_attention_backend("flex")
with torch.no_grad():
    model(**batch)

q = torch.randn(1, 128, 2, 16)
for backend in ("native", "flex"):
    dispatch_attention_fn(q, q, q, is_causal=True, backend=backend)
