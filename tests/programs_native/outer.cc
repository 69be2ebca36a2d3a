// A library with a RUNPATH of its own that loads a neighbour by bare name, as cuDNN loads its sub-libraries.
#include <dlfcn.h>
#include <stdio.h>

extern "C" int outer() {
  void* inner = dlopen("libinner.so", RTLD_NOW);
  if (inner == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return -1;
  }
  return reinterpret_cast<int (*)()>(dlsym(inner, "inner"))();
}
