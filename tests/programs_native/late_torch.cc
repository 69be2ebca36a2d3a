// A program without an interpreter that loads libtorch_cpu, at the path given, only after it has started.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (dlopen(argv[1], RTLD_NOW) == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  printf("loaded\n");
  return 0;
}
