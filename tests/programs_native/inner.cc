extern "C" int inner() { return 42; }
