#include "runtime/multiprocessing/call_file.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <link.h>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

namespace tensorplay::multiprocessing {
namespace {

using distributed::DistError;
using distributed::InvalidArgument;

/// The program's own file: what makes two processes the same program.
struct Identity {
  dev_t device;
  ino_t inode;
  off_t size;
};

Identity program_identity() {
  struct stat status {};
  if (::stat("/proc/self/exe", &status) != 0) {
    throw std::system_error(errno, std::generic_category(), "multiprocessing: /proc/self/exe");
  }
  return {status.st_dev, status.st_ino, status.st_size};
}

/// A loaded module; the program itself has an empty name.
struct Module {
  std::string name;
  std::uintptr_t base = 0;
};

/// The module for which `matches(info)` holds.
template <typename Matches>
std::optional<Module> find_module(Matches matches) {
  struct Search {
    Matches& matches;
    std::optional<Module> found;
  } search{matches, std::nullopt};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& the_search = *static_cast<Search*>(data);
        if (!the_search.matches(*info)) return 0;
        the_search.found = Module{info->dlpi_name, info->dlpi_addr};
        return 1;
      },
      &search);
  return search.found;
}

void put_place(ArgumentWriter& writer, Call::Function function) {
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  const auto holds = [&](const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& segment = info.dlpi_phdr[i];
      const auto begin = info.dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
    }
    return false;
  };
  const auto module = find_module(holds);
  if (!module) throw InvalidArgument("multiprocessing: the function is in no module of this program");
  writer.put(module->name);
  writer.put(address - module->base);
}

Call::Function get_place(ArgumentReader& reader) {
  std::string name;
  std::uintptr_t offset = 0;
  reader.get(name);
  reader.get(offset);
  const auto module = find_module([&](const dl_phdr_info& info) { return name == info.dlpi_name; });
  if (!module) {
    throw DistError("multiprocessing: the function is in " + name +
                    ", which a new process does not have: link it instead of loading it later");
  }
  return reinterpret_cast<Call::Function>(module->base + offset);
}

}  // namespace

std::string write_call(const WrittenCall& call) {
  ArgumentWriter writer;
  writer.put(program_identity());
  writer.put(call.parent);
  writer.put(call.index);
  writer.put(call.is_daemon);
  put_place(writer, reinterpret_cast<Call::Function>(call.call.unpack));
  put_place(writer, call.call.function);
  writer.put(call.call.arguments);
  return writer.take();
}

WrittenCall read_call(std::string_view text) {
  ArgumentReader reader(text);
  Identity identity{};
  reader.get(identity);
  const Identity mine = program_identity();
  if (identity.device != mine.device || identity.inode != mine.inode || identity.size != mine.size) {
    throw DistError("multiprocessing: the call was made by another program, or this one was replaced meanwhile");
  }
  WrittenCall call;
  reader.get(call.parent);
  reader.get(call.index);
  reader.get(call.is_daemon);
  call.call.unpack = reinterpret_cast<Call::Unpack>(get_place(reader));
  call.call.function = get_place(reader);
  reader.get(call.call.arguments);
  return call;
}

int make_memory_file(const char* name, std::string_view content) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "multiprocessing: memfd_create");
  std::size_t written = 0;
  while (written < content.size()) {
    const auto count = ::pwrite(fd, content.data() + written, content.size() - written, static_cast<off_t>(written));
    if (count < 0) {
      const int error = errno;
      ::close(fd);
      throw std::system_error(error, std::generic_category(), "multiprocessing: writing the call");
    }
    written += static_cast<std::size_t>(count);
  }
  return fd;
}

std::string read_whole(int fd) {
  std::string content;
  char part[4096];
  while (true) {
    const auto count = ::pread(fd, part, sizeof part, static_cast<off_t>(content.size()));
    if (count < 0) throw std::system_error(errno, std::generic_category(), "multiprocessing: reading the call");
    if (count == 0) return content;
    content.append(part, static_cast<std::size_t>(count));
  }
}

}  // namespace tensorplay::multiprocessing
