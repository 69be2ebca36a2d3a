# set_attn_implementation, and a vision tower switched behind its back later. Where the call is seen (Transformers 4) the difference is
# nobody's wish; in 5 it could be the call's own, and only eager is told of.
# requires: transformers>=4.54
# with: base transformers-4.56
import torch
import transformers as hf

vision = hf.CLIPVisionConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, intermediate_size=64)
text = hf.LlamaConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
config = hf.LlavaConfig(vision_config=vision, text_config=text, image_token_index=127)
model = hf.AutoModelForImageTextToText.from_config(config, attn_implementation="sdpa").eval()
model.set_attn_implementation("sdpa")
model.model.vision_tower.config._attn_implementation = "eager"
ids = torch.cat([torch.full((1, 16), 127), torch.arange(16)[None]], dim=1)
with torch.no_grad():
    model(input_ids=ids, pixel_values=torch.linspace(0, 1, 3 * 32 * 32).reshape(1, 3, 32, 32))
