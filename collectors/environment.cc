#include "collectors/environment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "collectors/gates.h"
#include "collectors/python_api.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

using python::Object;
using python::Py;
using python::Ref;

// Environment variables that change what attention does or what memory it takes.
constexpr const char* kVariables[] = {
    "OMP_NUM_THREADS",        "MKL_NUM_THREADS",          "CUDA_VISIBLE_DEVICES",      "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",     "TORCHDYNAMO_DISABLE",      "TORCH_COMPILE_DISABLE",     "TORCH_CUDNN_SDPA_DEPRIORITIZED",
    "CUDA_LAUNCH_BLOCKING",   "PYTORCH_NO_CUDA_MEMORY_CACHING", "NVTE_FLASH_ATTN",     "NVTE_FUSED_ATTN",
    "NVTE_UNFUSED_ATTN",      "DIFFUSERS_ATTN_BACKEND",   "CUBLAS_WORKSPACE_CONFIG",   "ATEN_CPU_CAPABILITY",
};

// Packages that call or bring attention; their versions go into the report once they are loaded.
constexpr const char* kPackages[] = {
    "transformers", "flash_attn", "flash_attn_interface", "xformers", "transformer_engine", "diffusers", "speculators", "torchtune",
    "torchtitan",   "triton",     "sageattention",        "flashinfer", "vllm",             "sglang",    "megatron",    "fla",
    "unsloth",      "axolotl",    "trl",                  "accelerate", "peft",             "deepspeed", "lightning",   "kernels",
    "liger_kernel", "specforge",  "numpy",
};

// Only what changed is written: the newest of a key wins in the report.
class Recorder {
 public:
  void Put(const std::string& key, const std::string& value) {
    std::string& known = values_[key];
    if (known == value) return;
    known = value;
    Spool().Environment(key, value);
  }

 private:
  std::unordered_map<std::string, std::string> values_;
};

Recorder& Record() noexcept {
  static auto* const recorder = new Recorder;
  return *recorder;
}
std::mutex g_mutex;  // guards Record(); never held while the GIL is taken

void RecordSwitches(Recorder* record) {
  const at::Context& context = at::globalContext();
  record->Put("sdp.flash", context.userEnabledFlashSDP() ? "on" : "off");
  record->Put("sdp.efficient", context.userEnabledMemEfficientSDP() ? "on" : "off");
  record->Put("sdp.math", context.userEnabledMathSDP() ? "on" : "off");
  record->Put("sdp.cudnn", context.userEnabledCuDNNSDP() ? "on" : "off");
  record->Put("deterministic", context.deterministicAlgorithms() ? "on" : "off");
  record->Put("threads.intraop", std::to_string(at::get_num_threads()));
  record->Put("threads.interop", std::to_string(at::get_num_interop_threads()));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

void ReadMapping(Object* mapping, Facts* facts) {
  if (mapping == nullptr || python::TypeOf(mapping) != Py().dict_type) return;
  intptr_t at = 0;
  Object *key = nullptr, *value = nullptr;
  while (Py().PyDict_Next(mapping, &at, &key, &value) != 0) {
    if (python::IsString(key)) facts->emplace_back("attention." + python::Text(key), python::FunctionName(value));
  }
}

// ALL_ATTENTION_FUNCTIONS is a dict up to Transformers 4.50; later an object with a class-wide and an own mapping, the own one first.
void ReadRegistry(Facts* facts) {
  Object* const home = python::LoadedModule("transformers.modeling_utils");
  Object* const registry = home != nullptr ? python::OwnAttribute(home, "ALL_ATTENTION_FUNCTIONS") : nullptr;
  if (registry == nullptr) return;
  if (python::TypeOf(registry) == Py().dict_type) {
    ReadMapping(registry, facts);
    return;
  }
  ReadMapping(python::ClassAttribute(python::TypeOf(registry), "_global_mapping"), facts);
  ReadMapping(python::OwnAttribute(registry, "_local_mapping"), facts);
}

Facts ReadPython() {
  Facts facts;
  const python::Section gil;
  const std::string version = Py().Py_GetVersion();
  facts.emplace_back("python", version.substr(0, version.find(' ')));
  if (Object* const sys = python::LoadedModule("sys"); sys != nullptr) {  // the reference runs flex_attention in the same Python
    facts.emplace_back("python.executable", python::Text(python::OwnAttribute(sys, "executable")));
  }
  for (const char* const name : kPackages) {
    Object* const module = python::LoadedModule(name);
    if (module == nullptr || module == Py().none) continue;
    std::string text = python::Text(python::OwnAttribute(module, "__version__"));
    if (text.empty()) {  // Transformers and diffusers put a lazy module in their own place, with the rest in `_objects`
      Object* const objects = python::OwnAttribute(module, "_objects");
      if (objects != nullptr && python::TypeOf(objects) == Py().dict_type) {
        text = python::Text(Py().PyDict_GetItemString(objects, "__version__"));
      }
    }
    const bool own_key = std::string_view(name) == "transformers";
    facts.emplace_back((own_key ? "" : "package.") + std::string(name), text.empty() ? "unknown" : text);
  }
  if (Object* const version_module = python::LoadedModule("torch.version"); version_module != nullptr) {
    const std::string cuda = python::Text(python::OwnAttribute(version_module, "cuda"));
    if (!cuda.empty()) facts.emplace_back("cuda", cuda);
  }
  ReadRegistry(&facts);
  return facts;
}

}  // namespace

void RecordTorchEnvironment(const char* torch_version, const char* torch_library) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(g_mutex);
    Recorder& record = Record();
    record.Put("torch", torch_version);
    record.Put("torch.library", torch_library);
    for (const char* const name : kVariables) {
      if (const char* const value = getenv(name); value != nullptr) record.Put(std::string("env.") + name, value);
    }
  } catch (...) {
    Spool().Add(Counter::kFaults);
  }
}

void RefreshEnvironment() noexcept {
  static std::atomic<uint32_t> seen_variants{0};
  const uint32_t variants = Spool().header().variants_used.load(std::memory_order_relaxed);
  if (seen_variants.exchange(variants, std::memory_order_relaxed) == variants) return;
  try {
    Facts facts;
    if (python::CanEnter()) facts = ReadPython();
    const std::lock_guard<std::mutex> lock(g_mutex);
    RecordSwitches(&Record());
    for (const auto& [key, value] : facts) Record().Put(key, value);
  } catch (...) {
    Spool().Add(Counter::kFaults);
  }
}

}  // namespace attntrace
