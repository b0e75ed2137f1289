/// A shared object that registers nothing.
extern "C" int silent_plugin() {
  return 1;
}
