# A vision tower for which eager was asked for by its name, in four ways: its scores are told, the difference is not.
# requires: transformers>=5
import tempfile
import torch
import transformers as hf

vision = hf.CLIPVisionConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, intermediate_size=64)
text = hf.LlamaConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)


def make(attention):
    config = hf.LlavaConfig(vision_config=vision, text_config=text, image_token_index=127)
    return hf.AutoModelForImageTextToText.from_config(config, attn_implementation=attention).eval()


def look(model):
    ids = torch.cat([torch.full((1, 16), 127), torch.arange(16)[None]], dim=1)
    with torch.no_grad():
        model(input_ids=ids, pixel_values=torch.linspace(0, 1, 3 * 32 * 32).reshape(1, 3, 32, 32))


look(make({"text_config": "sdpa", "vision_config": "eager"}))
look(make({"vision_config": "eager"}))
with tempfile.TemporaryDirectory() as folder:
    make("sdpa").save_pretrained(folder)
    look(hf.LlavaForConditionalGeneration.from_pretrained(folder, attn_implementation={"text_config": "sdpa", "vision_config": "eager"}))
later = make("sdpa")
later.set_attn_implementation({"vision_config": "eager"})
look(later)
