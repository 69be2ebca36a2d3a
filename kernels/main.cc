// attntrace-reference: measures attention calls that it is told on standard input (kernels/protocol.h), one after the other,
// until the input ends. Its own process: what goes wrong in here is a line in a report.
#include <ATen/Context.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "kernels/measure.h"
#include "kernels/surroundings.h"

bool attntrace::reference::InProgram() { return false; }

namespace {

// The kernel's killer, where memory runs out after all, takes this process first.
void OfferToTheKiller() {
  if (FILE* const file = std::fopen("/proc/self/oom_score_adj", "w")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
}

// CUDA registers itself when its library is loaded: one executable serves CPU and CUDA builds.
void LoadCuda() {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::cerr << dlerror() << '\n';
  }
}

}  // namespace

int main() {
  using namespace attntrace::reference;
  // Responses alone go to standard output; whatever a library prints there goes to standard error.
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  OfferToTheKiller();
  bool cuda_loaded = false;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    Request request;
    Response response;
    std::string why;
    if (!Decode(line, &request, &why)) {
      response.status = "error", response.words = why;
    } else {
      if (!cuda_loaded && request.device != "cpu") {
        LoadCuda();
        cuda_loaded = true;
      }
      response = Measure(request);
    }
    const std::string answer = Encode(response) + "\n";
    if (write(out, answer.data(), answer.size()) != static_cast<ssize_t>(answer.size())) break;
  }
  _exit(0);  // no destructors: PyTorch's statics and the memory functions above end in no order that is known
}
