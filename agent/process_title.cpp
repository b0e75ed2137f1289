#include "agent/process_title.hpp"

#include "runtime/base/fd.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

namespace tensorplay::agent {

namespace {

/// Fields of /proc/self/stat by their number in proc(5); those before the name's end are left zero.
using Fields = std::array<unsigned long long, 53>;

bool read_own_stat(Fields& fields) {
  const base::UniqueFd file(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  char text[2048] = {};
  if (!file || read(file.get(), text, sizeof text - 1) <= 0) return false;
  char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0' || at[2] == '\0') return false;
  at += 3;  // behind ") R"
  for (std::size_t number = 4; number < fields.size(); ++number) {
    char* end = nullptr;
    fields[number] = std::strtoull(at, &end, 10);
    if (end == at) return number > 51;
    at = end;
  }
  return true;
}

/// What /proc/self/cmdline shows lies between two addresses that the kernel lets a process move.
void move_command_line(char* text, std::size_t size) {
  Fields fields{};
  if (!read_own_stat(fields)) return;
  prctl_mm_map map{};
  map.start_code = fields[26];
  map.end_code = fields[27];
  map.start_stack = fields[28];
  map.start_data = fields[45];
  map.end_data = fields[46];
  map.start_brk = fields[47];
  map.brk = reinterpret_cast<unsigned long long>(sbrk(0));
  map.arg_start = reinterpret_cast<unsigned long long>(text);
  map.arg_end = map.arg_start + size;
  map.env_start = fields[50];
  map.env_end = fields[51];
  map.exe_fd = ~0U;
  prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

}  // namespace

void set_process_title(const char* name, const std::string& title) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
  // The kernel reads it from anonymous memory only, and for as long as the process lives: the page is never given back.
  const std::size_t size = title.size() + 1;
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  std::memcpy(page, title.c_str(), size);
  move_command_line(static_cast<char*>(page), size);
}

}  // namespace tensorplay::agent
