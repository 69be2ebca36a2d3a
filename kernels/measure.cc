#include "kernels/measure.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/check.h"
#include "kernels/memory_seam.h"
#include "kernels/observed.h"
#include "kernels/paths.h"
#include "kernels/surroundings.h"

namespace attntrace::reference {
namespace {

constexpr size_t kMostRepeats = 30, kFewRepeats = 5;  // a median of fewer says little

// Device time between two points: events on a GPU, the clock on a CPU.
class Stopwatch {
 public:
  explicit Stopwatch(at::Device device) : device_(device) {}

  template <typename F>
  uint64_t Time(F work) const {
    if (device_.is_cpu()) {
      const auto start = std::chrono::steady_clock::now();
      work();
      return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    }
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
    c10::Event start(device_.type(), c10::EventFlag::BACKEND_DEFAULT), end(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    start.record(stream);
    work();
    end.record(stream);
    end.synchronize();
    return static_cast<uint64_t>(start.elapsedTime(end) * 1e6);
  }

 private:
  const at::Device device_;
};

// PyTorch says why a backend does not fit in warnings; they are the words of a refusal.
class Listener final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::string& message = warning.msg();
    if (words.find(message) == std::string::npos && words.size() < 2000) words += (words.empty() ? "" : " ") + message;
  }
  std::string words;
};

class Run {
 public:
  explicit Run(const Request& request)
      : request_(request), device_(DeviceOf(request)), call_(MakeCall(request)), watch_(device_) {
    for (const at::Tensor& tensor : {call_.q, call_.k, call_.v, call_.mask.value_or(at::Tensor())}) {
      if (tensor.defined() && tensor.requires_grad()) inputs_.push_back(tensor);
    }
  }

  void Once(Response* response) {
    const int type = static_cast<int>(device_.type()), index = device_.index();
    const int64_t start = LiveBytes(type, index);
    ResetPeak(type, index);
    at::Tensor out;
    response->forward_ns = watch_.Time([&] { out = Forward(); });
    response->forward_peak_bytes = PeakBytes(type, index) - start;
    response->total_peak_bytes = response->forward_peak_bytes;
    const int64_t between = LiveBytes(type, index);
    response->kept_bytes = between - start;
    if (!WantsBackward(out)) return;
    // The gradient that comes in is the program's own, made before the backward call.
    const at::Tensor grad = GradientOf(out);
    const int64_t given = LiveBytes(type, index);
    ResetPeak(type, index);
    std::vector<at::Tensor> grads;
    response->backward_ns = watch_.Time([&] { grads = Backward(out, grad); });
    response->backward_peak_bytes = PeakBytes(type, index) - given;
    response->total_peak_bytes = std::max(response->total_peak_bytes, PeakBytes(type, index) - start);
  }

  // Medians, over as many runs as the limit has room for.
  void Repeat(Response* response) {
    std::vector<uint64_t> forward, backward;
    const auto start = std::chrono::steady_clock::now();
    const auto limit = std::chrono::milliseconds(request_.limit_ms);
    const auto goes_on = [&] {
      const auto spent = std::chrono::steady_clock::now() - start;
      return forward.size() < kMostRepeats && (spent < limit || (forward.size() < kFewRepeats && spent < 5 * limit));
    };
    do {
      at::Tensor out;
      forward.push_back(watch_.Time([&] { out = Forward(); }));
      if (WantsBackward(out)) {
        const at::Tensor grad = GradientOf(out);
        backward.push_back(watch_.Time([&] { Backward(out, grad); }));
      }
    } while (goes_on());
    response->repeats = static_cast<uint32_t>(forward.size());
    response->forward_ns = Median(&forward);
    response->backward_ns = Median(&backward);
  }

  void Check(Response* response) {
    // Only of our own kernel is it known what was dropped.
    const bool known = call_.dropout == 0 || (request_.path == "tiled" && request_.changes.empty());
    if (!known || !CanCheck(call_)) return;
    at::Tensor out = Forward();
    std::vector<at::Tensor> grads;
    const at::Tensor grad = GradientOf(out);
    if (WantsBackward(out)) grads = Backward(out, grad);
    response->max_difference = LargestDifference(call_, inputs_, out, grad, grads);
  }

 private:
  static uint64_t Median(std::vector<uint64_t>* times) {
    if (times->empty()) return 0;
    std::nth_element(times->begin(), times->begin() + static_cast<int64_t>(times->size() / 2), times->end());
    return (*times)[times->size() / 2];
  }
  // Laid out as the output is: kernels whose output is a transposed view copy a gradient that is not.
  static at::Tensor GradientOf(const at::Tensor& out) {
    return at::empty_like(out.detach()).normal_(0, 1, OwnGenerator(out.device()));
  }
  at::Tensor Forward() const {
    const c10::AutoGradMode mode(request_.backward || !inputs_.empty());
    return RunPath(request_.path, request_.changes, call_);
  }
  bool WantsBackward(const at::Tensor& out) const { return request_.backward && !inputs_.empty() && out.requires_grad(); }
  std::vector<at::Tensor> Backward(const at::Tensor& out, const at::Tensor& grad) const {
    return torch::autograd::grad({out}, inputs_, {grad}, /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  }

  const Request& request_;
  const at::Device device_;
  const TensorCall call_;
  const Stopwatch watch_;
  std::vector<at::Tensor> inputs_;
};

// In words of our own: PyTorch's speak of operators.
void CheckDevice(at::Device device) {
  if (device.is_cpu()) return;
  TORCH_CHECK(at::globalContext().hasCUDA(), "this machine has no CUDA device that PyTorch can use");
  const c10::DeviceIndex devices = c10::impl::VirtualGuardImpl(device.type()).deviceCount();
  TORCH_CHECK(device.index() < devices, "this machine has no ", device, ": it has ", static_cast<int>(devices),
              " CUDA devices");
}

// By name, since neither process links libtorch_cuda; PyTorch 2.6 does not have it.
int64_t WorkspaceBytes(at::Device device) {
  void* const cuda = device.is_cpu() ? nullptr : dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  if (cuda == nullptr) return 0;
  const auto size = reinterpret_cast<size_t (*)()>(dlsym(cuda, "_ZN2at4cuda22getChosenWorkspaceSizeEv"));
  return size == nullptr ? 0 : static_cast<int64_t>(size());
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Response Measure(const Request& request) noexcept {
  Response response;
  response.id = request.id;
  Listener listener;
  const c10::WarningUtils::WarningHandlerGuard guard(&listener);
  try {
    const c10::WarningUtils::WarnAlways always(true);
    TORCH_CHECK(KnowsPath(request.path), "no path ", request.path);
    CheckDevice(DeviceOf(request));
    Run run(request);
    {
      const Observed observed;
      // On a GPU the first run also makes workspaces that stay (cuBLAS), which are not the call's own: it does not count.
      run.Once(&response);
      response.backend = observed.backend().empty() ? request.path : observed.backend();
    }
    if (request.device != "cpu") run.Once(&response);
    response.workspace_bytes = WorkspaceBytes(DeviceOf(request));
    run.Repeat(&response);
    if (request.check) run.Check(&response);
    response.status = "ok";
  } catch (const c10::OutOfMemoryError& error) {
    response.status = "oom";
    response.words = FirstLine(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    response.status = "oom";
  } catch (const c10::Error& error) {
    const std::string what = FirstLine(error.what_without_backtrace());
    const bool memory =
        what.find("allocate memory") != std::string::npos || what.find("not enough memory") != std::string::npos;
    const bool refused = !memory && (what.find("No available kernel") != std::string::npos ||
                                     what.find("No viable backend") != std::string::npos ||
                                     what.find("Invalid backend") != std::string::npos || !listener.words.empty());
    response.status = memory ? "oom" : refused ? "refused" : "error";
    response.words = refused && !listener.words.empty() ? listener.words : what;
  } catch (const std::exception& error) {
    response.status = "error";
    response.words = FirstLine(error.what());
  } catch (...) {
    response.status = "error";
  }
  return response;
}

}  // namespace attntrace::reference
