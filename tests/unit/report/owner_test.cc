#include "report/owner.h"

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

UserTree Tree(const std::string& script, const std::string& directory = "/home/ada") {
  UserTree tree(directory);
  tree.AddScript(script);
  return tree;
}

TEST_CASE("PyTorch's, Python's and the user's own frames are told apart") {
  const UserTree tree = Tree("/home/ada/project/train.py");
  const auto owner = [&](const char* file, const char* module) { return PythonOwner(file, module, tree); };
  CHECK(owner("/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", "torch.nn.modules.module") == "torch");
  CHECK(owner("/venv/lib/python3.12/site-packages/triton/runtime/jit.py", "triton.runtime.jit") == "torch");
  CHECK(owner("/src/pytorch/torch/nn/functional.py", "torch.nn.functional") == "torch");
  CHECK(owner("<eval_with_key>.12", "") == "torch");
  CHECK(owner("/tmp/torchinductor_ada/ab/cab.py", "torch._inductor.x") == "torch");
  CHECK(owner("/tmp/torchinductor_ada/ab/cab.py", "cab") == "torch");
  CHECK(owner("/usr/lib/python3.11/threading.py", "threading") == "python");
  CHECK(owner("/opt/conda/lib/python3.13t/runpy.py", "runpy") == "python");
  CHECK(owner("/usr/lib/python311.zip/runpy.py", "runpy") != "torch");
  CHECK(owner("<frozen importlib._bootstrap>", "importlib._bootstrap") == "python");
  CHECK(owner("<frozen runpy>", "runpy") == "python");
  CHECK(owner("/venv/bin/torchrun", "__main__") == "python");
  CHECK(owner("/home/ada/project/train.py", "__main__") == "user");
  CHECK(owner("/home/ada/project/sub/model.py", "sub.model") == "user");
  CHECK(owner("train.py", "__main__") == "user");
  CHECK(owner("<string>", "__main__") == "user");
  CHECK(owner("<stdin>", "__main__") == "user");
  CHECK(owner("/tmp/ipykernel_12/345.py", "__main__") == "user");
}

TEST_CASE("a library owns its files, wherever it was installed") {
  const UserTree tree = Tree("/home/ada/project/train.py");
  const auto owner = [&](const char* file, const char* module) { return PythonOwner(file, module, tree); };
  CHECK(owner("/venv/lib/python3.12/site-packages/transformers/models/x.py", "transformers.models.x") == "transformers");
  CHECK(owner("/usr/lib/python3/dist-packages/numpy/core.py", "numpy.core") == "numpy");
  CHECK(owner("/venv/lib/python3.12/site-packages/einops.py", "einops") == "einops");
  // An editable install, and a folder on PYTHONPATH.
  CHECK(owner("/home/ada/speculators/src/speculators/models/eagle.py", "speculators.models.eagle") == "speculators");
  CHECK(owner("/srv/vendor/attention.py", "vendor.attention") == "vendor");
  // A folder beside the script is the user's own, whatever it is called.
  CHECK(owner("/home/ada/project/vendor/attention.py", "vendor.attention") == "user");
  // A folder that only begins like the script's is another one.
  CHECK(owner("/home/ada/project2/lib.py", "lib") == "lib");
  // Inside the user's tree, but installed.
  CHECK(owner("/home/ada/project/.venv/lib/python3.12/site-packages/peft/x.py", "peft.x") == "peft");
}

TEST_CASE("without a script of the user's, the working directory is the user's") {
  UserTree tree("/home/ada/project");
  tree.AddScript("/venv/lib/python3.12/site-packages/pytest/__main__.py");
  tree.AddScript("/venv/bin/pytest");
  tree.AddScript("<string>");
  CHECK(PythonOwner("/home/ada/project/tests/test_model.py", "test_model", tree) == "user");
  CHECK(PythonOwner("/srv/lib/other.py", "other", tree) == "other");
}

TEST_CASE("native frames are owned by their object") {
  CHECK(NativeOwner("/venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so") == "torch");
  CHECK(NativeOwner("/opt/libtorch/lib/libc10.so") == "torch");
  CHECK(NativeOwner("/usr/lib/x86_64-linux-gnu/libc.so.6") == "system");
  CHECK(NativeOwner("/usr/lib/x86_64-linux-gnu/libstdc++.so.6") == "system");
  CHECK(NativeOwner("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0") == "python");
  CHECK(NativeOwner("/usr/bin/python3.11") == "python");
  CHECK(NativeOwner("/venv/lib/python3.12/site-packages/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so") ==
        "flash_attn_2_cuda");
  CHECK(NativeOwner("/home/ada/build/serve") == "user");
}

TEST_CASE("paths are shown as their package or the user names them") {
  CHECK(ShortPath("/v/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py", "transformers.models.llama",
                  "transformers", "/home/ada") == "models/llama/modeling_llama.py");
  CHECK(ShortPath("/v/lib/python3.12/site-packages/einops.py", "einops", "einops", "/home/ada") == "einops.py");
  CHECK(ShortPath("/home/ada/project/train.py", "__main__", "user", "/home/ada/project") == "train.py");
  CHECK(ShortPath("/home/ada/project/train.py", "__main__", "user", "/home/ada/pro") == "/home/ada/project/train.py");
  CHECK(ShortPath("/home/ada/speculators/src/speculators/models/eagle.py", "speculators.models.eagle", "speculators",
                  "/home/ada/project") == "models/eagle.py");
  CHECK(ShortPath("/srv/x.py", "x", "user", "") == "/srv/x.py");
}

}  // namespace
}  // namespace attntrace
