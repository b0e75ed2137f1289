#include "runtime/backend/mpi/mpi_session.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/tcp_store.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>

namespace tensorplay::distributed::mpi {
namespace {

namespace env = base::env;

std::atomic<int> g_communicators{0};

/// What mpirun, srun and their like set for the processes they start.
constexpr std::array kLauncherMarks = {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"};

/// At the end of the program. With groups that nobody destroyed nothing is finalised: it would wait for peers in an
/// unknown state. mpirun then says that this process ended without it, and ends the job.
void end_session() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized == 0 && g_communicators == 0) MPI_Finalize();
}

std::string shared_address() {
  MPI_Comm here = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here), "mpi: who shares a host");
  int on_host = 0;
  int size = 0;
  MPI_Comm_size(here, &on_host);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_free(&here);
  if (on_host == size) return "127.0.0.1";
  const auto addresses = base::interface_addresses();
  return addresses.empty() ? base::full_host_name() : addresses.front().address;
}

}  // namespace

std::mutex& lock_of_mpi() {
  static auto* const mutex = new std::mutex;  // Used until the very end.
  return *mutex;
}

void check(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw DistBackendError(what + ": " + std::string(text.data(), static_cast<std::size_t>(length)));
}

std::string refusal(const std::vector<std::pair<std::string, std::string>>& environment) {
  const auto value = [&](const std::string& name) {
    for (const auto& [known, text] : environment) {
      if (known == name) return text;
    }
    return std::string();
  };
  for (const char* mark : kLauncherMarks) {
    if (!value(mark).empty()) return {};
  }
  const std::string size = value(env::kWorldSize);
  const bool is_under_agent = !value(env::kRunId).empty();
  if (!is_under_agent && (size.empty() || size == "1")) return {};  // A world of one is what MPI makes of it, too.
  return std::string("backend mpi: this process was started by ") + (is_under_agent ? "tprun" : "something else") +
         ", not by MPI's own launcher, so MPI would see a world of one rank; type: mpirun -n " +
         (size.empty() ? "2" : size) + " ./program";
}

void ensure_session() {
  static std::once_flag once;
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized == 0) {
    std::vector<std::pair<std::string, std::string>> environment;
    for (const char* name : kLauncherMarks) environment.emplace_back(name, base::env_value(name).value_or(""));
    for (const char* name : {env::kWorldSize, env::kRunId}) {
      environment.emplace_back(name, base::env_value(name).value_or(""));
    }
    if (const auto text = refusal(environment); !text.empty()) throw InvalidArgument(text);
  }
  std::call_once(once, [&] {
    const std::lock_guard lock(lock_of_mpi());
    int provided = MPI_THREAD_SINGLE;
    if (is_initialized == 0) {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      std::atexit(end_session);
    } else {
      MPI_Query_thread(&provided);
    }
    if (provided < MPI_THREAD_SERIALIZED) {
      throw DistBackendError("backend mpi: this MPI cannot be used by several threads");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  });
}

BackendTraits::Meeting meet(std::chrono::milliseconds limit) {
  ensure_session();
  BackendTraits::Meeting meeting;
  const std::lock_guard lock(lock_of_mpi());
  MPI_Comm_rank(MPI_COMM_WORLD, &meeting.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &meeting.size);
  const std::string address = shared_address();
  TCPStoreOptions options;
  options.host = address;
  options.timeout = limit;
  options.wait_for_workers = false;
  options.port = 0;
  std::array<char, 512> place{};
  std::shared_ptr<TCPStore> store;
  if (meeting.rank == 0) {
    options.is_master = true;
    store = std::make_shared<TCPStore>(options);
    (address + " " + std::to_string(store->port())).copy(place.data(), place.size() - 1);
  }
  check(MPI_Bcast(place.data(), static_cast<int>(place.size()), MPI_CHAR, 0, MPI_COMM_WORLD),
        "mpi: where the store is");
  if (meeting.rank != 0) {
    const std::string told = place.data();
    const auto space = told.find(' ');
    options.host = told.substr(0, space);
    options.port = static_cast<std::uint16_t>(std::stoi(told.substr(space + 1)));
    store = std::make_shared<TCPStore>(options);
  }
  meeting.store = store;
  return meeting;
}

MPI_Comm make_communicator(const std::vector<int>& ranks, const std::string& name) {
  const std::lock_guard lock(lock_of_mpi());
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group members = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "mpi: the world's group");
  check(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &members), "mpi: the members");
  const int tag = static_cast<int>(std::hash<std::string>()(name) % 32767);
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, &communicator);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  check(code, "mpi: group " + name);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  ++g_communicators;
  return communicator;
}

void free_communicator(MPI_Comm communicator) {
  const std::lock_guard lock(lock_of_mpi());
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized == 0) MPI_Comm_free(&communicator);
  --g_communicators;
}

}  // namespace tensorplay::distributed::mpi
