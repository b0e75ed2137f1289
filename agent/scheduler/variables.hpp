/// The variables of batch schedulers and MPI launchers that tprun reads; docs/schedulers.md has a line for each.
#pragma once

namespace tensorplay::agent::scheduler_env {

// SLURM.
inline constexpr const char* kSlurmJobId = "SLURM_JOB_ID";
inline constexpr const char* kSlurmJobIdOfComponent = "SLURM_JOB_ID_HET_GROUP_";  ///< Followed by a number.
inline constexpr const char* kSlurmConf = "SLURM_CONF";
inline constexpr const char* kSlurmJobNodelist = "SLURM_JOB_NODELIST";
inline constexpr const char* kSlurmRestartCount = "SLURM_RESTART_COUNT";
inline constexpr const char* kSlurmStepId = "SLURM_STEP_ID";
inline constexpr const char* kSlurmStepNodelist = "SLURM_STEP_NODELIST";
inline constexpr const char* kSlurmStepNumNodes = "SLURM_STEP_NUM_NODES";
inline constexpr const char* kSlurmStepNumTasks = "SLURM_STEP_NUM_TASKS";
inline constexpr const char* kSlurmNodeId = "SLURM_NODEID";
inline constexpr const char* kSlurmProcId = "SLURM_PROCID";
inline constexpr const char* kSlurmGtids = "SLURM_GTIDS";
inline constexpr const char* kSlurmGpusOnNode = "SLURM_GPUS_ON_NODE";

// PBS and Torque.
inline constexpr const char* kPbsJobId = "PBS_JOBID";
inline constexpr const char* kPbsNodefile = "PBS_NODEFILE";
inline constexpr const char* kPbsNodeNum = "PBS_NODENUM";
inline constexpr const char* kPbsTaskNum = "PBS_TASKNUM";

// LSF.
inline constexpr const char* kLsbJobId = "LSB_JOBID";
inline constexpr const char* kLsbJobIndex = "LSB_JOBINDEX";
inline constexpr const char* kLsbMcpuHosts = "LSB_MCPU_HOSTS";
inline constexpr const char* kLsbHosts = "LSB_HOSTS";
inline constexpr const char* kLsfPmTaskId = "LSF_PM_TASKID";
inline constexpr const char* kJsmSize = "JSM_NAMESPACE_SIZE";
inline constexpr const char* kJsmRank = "JSM_NAMESPACE_RANK";
inline constexpr const char* kJsmLocalSize = "JSM_NAMESPACE_LOCAL_SIZE";

// Grid Engine.
inline constexpr const char* kSgeJobId = "JOB_ID";
inline constexpr const char* kSgeTaskId = "SGE_TASK_ID";
inline constexpr const char* kSgeRoot = "SGE_ROOT";
inline constexpr const char* kSgeHostfile = "PE_HOSTFILE";
inline constexpr const char* kSgeRestarted = "RESTARTED";

// Open MPI.
inline constexpr const char* kOmpiSize = "OMPI_COMM_WORLD_SIZE";
inline constexpr const char* kOmpiRank = "OMPI_COMM_WORLD_RANK";
inline constexpr const char* kOmpiLocalSize = "OMPI_COMM_WORLD_LOCAL_SIZE";
inline constexpr const char* kOmpiHeadUri = "OMPI_MCA_orte_hnp_uri";
inline constexpr const char* kOmpiJob = "OMPI_MCA_ess_base_jobid";
inline constexpr const char* kPmixNamespace = "PMIX_NAMESPACE";

// Hydra (MPICH, Intel MPI) and Cray's launcher.
inline constexpr const char* kPmiSize = "PMI_SIZE";
inline constexpr const char* kPmiRank = "PMI_RANK";
inline constexpr const char* kMpiLocalRanks = "MPI_LOCALNRANKS";
inline constexpr const char* kPmiLocalSize = "PMI_LOCAL_SIZE";

// Kubernetes.
inline constexpr const char* kJobCompletionIndex = "JOB_COMPLETION_INDEX";

}  // namespace tensorplay::agent::scheduler_env
