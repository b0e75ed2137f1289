/// This process's part in MPI: initialised when first needed, finalised when the program ends.
///
/// All calls into MPI are made with one lock held and never block for long: operations are started without blocking and
/// asked about. So MPI_THREAD_SERIALIZED is enough, and deadlines hold.
/// Thread rules: any thread.
#pragma once

#include "tensorplay/distributed/backend.hpp"

#include <chrono>
#include <mpi.h>
#include <mutex>
#include <string>
#include <vector>

namespace tensorplay::distributed::mpi {

/// Hold it around every call of MPI.
std::mutex& lock_of_mpi();

/// Initialises MPI. InvalidArgument, saying what to type, where this process was started by tprun: MPI would see a
/// world of one there. DistBackendError when MPI cannot be used by threads.
void ensure_session();

/// MPI's rank and size, and a store that all ranks share, hosted by rank 0 and told to the others through MPI.
BackendTraits::Meeting meet(std::chrono::milliseconds limit);

/// A communicator of these ranks of MPI_COMM_WORLD; all of them call, nobody else does.
MPI_Comm make_communicator(const std::vector<int>& ranks, const std::string& name);
void free_communicator(MPI_Comm communicator);

/// DistBackendError, with MPI's text, when `code` is no success.
void check(int code, const std::string& what);

/// The sentence for a program that was not started by mpirun, or empty. Pure: `environment` gives a variable's value.
std::string refusal(const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace tensorplay::distributed::mpi
