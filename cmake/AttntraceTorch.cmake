# Finds the PyTorch of Python_EXECUTABLE and defines the imported targets attntrace::torch_cpu and attntrace::c10, and
# ATTNTRACE_TORCH_VERSION, ATTNTRACE_TORCH_KEY (the agent's folder name, see tracer/spool/names.h), ATTNTRACE_TORCH_LIB.
#
# Not find_package(Torch): the CUDA wheels' package file wants a whole CUDA toolkit, and links far more than an agent may need.
if(NOT Python_EXECUTABLE)
  find_program(Python_EXECUTABLE NAMES python3 python REQUIRED)
endif()
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import torch, os; print(torch.__version__); print(os.path.dirname(torch.__file__)); print(int(torch._C._GLIBCXX_USE_CXX11_ABI))"
  OUTPUT_VARIABLE _torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE _error RESULT_VARIABLE _code)
if(NOT _code EQUAL 0)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no PyTorch that can be imported. Pass -DPython_EXECUTABLE=... of one that has, "
                      "or -DATTNTRACE_BUILD_AGENT=OFF.\n${_error}")
endif()
string(REPLACE "\n" ";" _torch "${_torch}")
list(GET _torch 0 ATTNTRACE_TORCH_VERSION)
list(GET _torch 1 _root)
list(GET _torch 2 _abi)
set(ATTNTRACE_TORCH_LIB ${_root}/lib)
string(REGEX REPLACE "\\+.*" "" _plain ${ATTNTRACE_TORCH_VERSION})
set(ATTNTRACE_TORCH_KEY torch-${_plain})
if(NOT _abi)
  string(APPEND ATTNTRACE_TORCH_KEY -oldabi)
endif()
message(STATUS "PyTorch ${ATTNTRACE_TORCH_VERSION} of ${Python_EXECUTABLE}, agent ${ATTNTRACE_TORCH_KEY}")

foreach(_library torch_cpu c10)
  add_library(attntrace::${_library} SHARED IMPORTED)
  set_target_properties(attntrace::${_library} PROPERTIES
    IMPORTED_LOCATION ${_root}/lib/lib${_library}.so
    INTERFACE_INCLUDE_DIRECTORIES "${_root}/include;${_root}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=${_abi})
endforeach()
