#include "kernels/inline.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <time.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <optional>
#include <thread>

#include "kernels/free_memory.h"
#include "kernels/measure.h"
#include "kernels/memory_seam.h"
#include "kernels/steps.h"
#include "kernels/surroundings.h"

namespace attntrace::reference {
namespace {

constexpr uint64_t kRepeatMs = 20;
constexpr int64_t kMostChecked = 1 << 20;  // scores that are compared with float64 math: that takes eight bytes each, and more

thread_local const AttntraceInlineHost* t_host = nullptr;

// The state of a thread that has set nothing: no autocast, no mode, no hooks, gradients on. Backward passes stay on the thread.
at::ThreadLocalState Pristine() {
  std::optional<at::ThreadLocalState> state;
  std::thread([&] { state.emplace(); }).join();
  state->set_multithreading_enabled(false);
  return *state;
}

// The default stream of a device for the life of this object, whichever the program uses.
class DefaultStream {
 public:
  explicit DefaultStream(at::Device device) {
    if (device.is_cpu()) return;
    guard_.emplace(device);
    implementation_.emplace(device.type());
    before_ = implementation_->getStream(device);
    implementation_->exchangeStream(implementation_->getDefaultStream(device));
  }
  ~DefaultStream() {
    if (before_) implementation_->exchangeStream(*before_);
  }
  DefaultStream(const DefaultStream&) = delete;
  DefaultStream& operator=(const DefaultStream&) = delete;

 private:
  std::optional<c10::DeviceGuard> guard_;
  std::optional<c10::impl::VirtualGuardImpl> implementation_;
  std::optional<c10::Stream> before_;
};

uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

TensorSpec SpecOf(const spool::TensorDef& tensor) {
  TORCH_CHECK(tensor.nested == 0 && tensor.rank >= 2 && tensor.rank <= spool::kMaxDims, "a reference run has no such tensors");
  TensorSpec spec;
  spec.sizes.assign(tensor.sizes, tensor.sizes + tensor.rank);
  spec.strides.assign(tensor.strides, tensor.strides + tensor.rank);
  spec.dtype = NameOf(tensor.dtype);
  spec.requires_grad = tensor.requires_grad != 0;
  return spec;
}

Case CaseOf(const AttntraceInlineCall& seen) {
  Case one;
  Request& call = one.call;
  one.observed_path = PathOf(seen.backend);
  one.flex = one.observed_path == "flex-dense";
  call.q = SpecOf(*seen.q), call.k = SpecOf(*seen.k), call.v = SpecOf(*seen.v);
  if (!one.flex && seen.mask->present != 0) call.mask = SpecOf(*seen.mask);
  if (one.flex || call.mask) call.mask_content = seen.mask_content;
  call.device = seen.q->device == DeviceKind::kCpu ? "cpu" : "cuda:" + std::to_string(int{seen.q->device_index});
  call.dropout = seen.dropout;
  call.causal = (seen.flags & spool::kCausal) != 0;
  call.gqa = (seen.flags & spool::kGqa) != 0;
  if ((seen.flags & spool::kScaleGiven) != 0) call.scale = seen.scale;
  call.backward = seen.backward != 0;
  if (call.backward && !call.q.requires_grad && !call.k.requires_grad && !call.v.requires_grad) {
    call.q.requires_grad = call.k.requires_grad = call.v.requires_grad = true;
  }
  int64_t scores = call.q.sizes[call.q.sizes.size() - 2] * call.k.sizes[call.k.sizes.size() - 2];
  for (size_t i = 0; i + 2 < call.q.sizes.size(); ++i) scores *= call.q.sizes[i];
  call.check = scores <= kMostChecked;
  call.limit_ms = kRepeatMs;
  return one;
}

int64_t BytesOf(const TensorSpec& tensor) {
  int64_t bytes = tensor.dtype == "float64" ? 8 : tensor.dtype == "float32" ? 4 : tensor.dtype == "bool" ? 1 : 2;
  for (const int64_t size : tensor.sizes) bytes *= size;
  return bytes;
}

// Inputs, their gradients and what a change copies, beside what the call itself took in the program.
int64_t Needs(const Request& call, int64_t observed_bytes) {
  const int64_t inputs = BytesOf(call.q) + BytesOf(call.k) + BytesOf(call.v) + (call.mask ? BytesOf(*call.mask) : 0);
  return 4 * inputs + observed_bytes;
}

std::string Mib(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Why a step is not made now; empty where it is.
std::string Obstacle(const AttntraceInlineCall& seen, const Request& request) {
  if (request.path.compare(0, 5, "flex-") == 0) return "flex_attention is Python's, and inside the program none is run";
  if (request.dropout > 0 && request.path != "tiled" && (request.changes.empty() || request.changes.back() != "no-dropout")) {
    return "dropout would draw from the program's random numbers";
  }
  if (seen.deadline_ns != ~uint64_t{0}) {
    const uint64_t now = Now(), likely = 6 * seen.observed_ns;  // a first run, and five for the median
    if (now >= seen.deadline_ns || seen.deadline_ns - now < likely) {
      return "the " + std::to_string(seen.budget_seconds) + " s of --reference-budget were used up, or would have been";
    }
  }
  const bool cpu = request.device == "cpu";
  const int64_t free = cpu ? FreeMainMemory() : FreeDeviceMemory();
  if (free < 0) return "the device does not say what memory is free";
  const int64_t needs = Needs(request, seen.observed_bytes), may = free / 100 * seen.memory_percent;
  if (needs > may) return "memory is short in the program: it may need " + Mib(needs) + " and " + Mib(may) + " may be used";
  return "";
}

void RunAll(const AttntraceInlineHost& host, const AttntraceInlineCall& seen) {
  const Case one = CaseOf(seen);
  static const at::ThreadLocalState pristine = Pristine();
  const at::ThreadLocalStateGuard isolated(pristine);
  const DefaultStream stream{at::Device(one.call.device)};
  std::vector<Done> done;
  while (const std::optional<Step> step = NextStep(one, done)) {
    Done answered{*step, {}};
    if (std::string why = Obstacle(seen, step->request); why.empty()) {
      answered.response = Measure(step->request);
    } else {
      answered.response.status = "skipped", answered.response.words = std::move(why);
    }
    host.answer(seen.to, step->purpose.c_str(), Encode(step->request).c_str(), Encode(answered.response).c_str());
    done.push_back(std::move(answered));
    if (done.size() > 32) break;
  }
}

}  // namespace

bool InProgram() { return true; }

int64_t LiveBytes(int type, int index) { return t_host->live(type, index); }
int64_t PeakBytes(int type, int index) { return t_host->peak(type, index); }
void ResetPeak(int type, int index) { t_host->reset(type, index); }

}  // namespace attntrace::reference

extern "C" __attribute__((visibility("default"))) int attntrace_inline_is_quiet() {
  try {
    const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    if (!(keys.included_ - c10::default_included_set).empty()) return 0;
    c10::DispatchKeySet left_out = keys.excluded_ - c10::default_excluded_set;
    if (c10::InferenceMode::is_enabled()) left_out = left_out - c10::autograd_dispatch_keyset;
    if (!left_out.empty()) return 0;
    if (!at::SavedTensorDefaultHooks::get_tls_state().stack.empty()) return 0;
    return torch::profiler::impl::profilerEnabled() ? 0 : 1;
  } catch (...) {
    return 0;
  }
}

extern "C" __attribute__((visibility("default"))) void attntrace_inline_run(const AttntraceInlineHost* host,
                                                                            const AttntraceInlineCall* call) {
  using namespace attntrace::reference;
  if (host->size != sizeof(AttntraceInlineHost) || call->size != sizeof(AttntraceInlineCall)) return;
  t_host = host;
  try {
    RunAll(*host, *call);
  } catch (...) {  // a call that no request can be made of: the report says that it was not run
  }
  t_host = nullptr;
}
