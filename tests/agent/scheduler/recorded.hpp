/// The environments of real jobs, cut down to what could matter: SLURM 22.05 (srun, sbatch, heterogeneous and nested
/// jobs), Open MPI 4.1 and MPICH 5 as recorded; the others as their manuals describe them.
#pragma once

#include <string>
#include <vector>

namespace tensorplay::agent::recorded {

using Environment = std::vector<std::string>;

inline Environment slurm_job(const std::string& nodelist, int nodes) {
  return {"SLURM_JOB_ID=42",
          "SLURM_JOBID=42",
          "SLURM_JOB_NODELIST=" + nodelist,
          "SLURM_NODELIST=" + nodelist,
          "SLURM_JOB_NUM_NODES=" + std::to_string(nodes),
          "SLURM_NNODES=" + std::to_string(nodes),
          "SLURM_JOB_NAME=train"};
}

/// A batch script: node 0 and task 0, though there is no step.
inline Environment slurm_batch_script() {
  Environment env = slurm_job("n[1-3]", 3);
  env.insert(env.end(), {"SLURM_PROCID=0", "SLURM_NODEID=0", "SLURM_LOCALID=0", "SLURM_GTIDS=0", "SLURM_TASK_PID=13909",
                         "SLURMD_NODENAME=n1", "SLURM_TASKS_PER_NODE=1(x3)", "SLURM_NTASKS=3"});
  return env;
}

/// Task `rank` of srun in a job on n[1-3], one on each node of `nodelist`.
inline Environment slurm_step(const std::string& nodelist, int nodes, int rank) {
  Environment env = slurm_job("n[1-3]", 3);
  env.insert(env.end(),
             {"SLURM_STEP_ID=0", "SLURM_STEPID=0", "SLURM_STEP_NODELIST=" + nodelist,
              "SLURM_STEP_NUM_NODES=" + std::to_string(nodes), "SLURM_STEP_NUM_TASKS=" + std::to_string(nodes),
              "SLURM_STEP_TASKS_PER_NODE=1(x" + std::to_string(nodes) + ")", "SLURM_PROCID=" + std::to_string(rank),
              "SLURM_NODEID=" + std::to_string(rank), "SLURM_LOCALID=0", "SLURM_GTIDS=" + std::to_string(rank),
              "SLURM_LAUNCH_NODE_IPADDR=10.0.0.1", "SLURM_SRUN_COMM_PORT=35865"});
  return env;
}

/// srun -N2 --ntasks-per-node=2.
inline Environment slurm_two_tasks_on_a_node(int rank) {
  Environment env = slurm_job("n[1-2]", 2);
  env.insert(env.end(),
             {"SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NUM_TASKS=4",
              "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_PROCID=" + std::to_string(rank),
              "SLURM_NODEID=" + std::to_string(rank / 2), "SLURM_LOCALID=" + std::to_string(rank % 2),
              rank < 2 ? "SLURM_GTIDS=0,1" : "SLURM_GTIDS=2,3"});
  return env;
}

inline Environment open_mpi(int size, int rank, int local_size) {
  return {"OMPI_COMM_WORLD_SIZE=" + std::to_string(size),
          "OMPI_COMM_WORLD_RANK=" + std::to_string(rank),
          "OMPI_COMM_WORLD_LOCAL_SIZE=" + std::to_string(local_size),
          "OMPI_COMM_WORLD_LOCAL_RANK=0",
          "OMPI_COMM_WORLD_NODE_RANK=0",
          "OMPI_UNIVERSE_SIZE=4",
          "OMPI_MCA_ess_base_jobid=749076481",
          "OMPI_MCA_orte_hnp_uri=749076480.0;tcp://192.0.2.2,10.0.0.2:56603;tcp6://[fd00::2]:38891"};
}

inline Environment hydra(int size, int rank, int local_size) {
  return {"PMI_SIZE=" + std::to_string(size),
          "PMI_RANK=" + std::to_string(rank),
          "MPI_LOCALNRANKS=" + std::to_string(local_size),
          "MPI_LOCALRANKID=0",
          "PMI_FD=9",
          "HYDI_CONTROL_FD=7",
          "PMI_HOSTNAME=n2"};
}

inline Environment pbs(int node, const std::string& task) {
  return {"PBS_JOBID=123.server",  "PBS_NODEFILE=/var/spool/pbs/aux/123.server", "PBS_ENVIRONMENT=PBS_BATCH",
          "PBS_O_WORKDIR=/home/u", "PBS_NODENUM=" + std::to_string(node),        "PBS_TASKNUM=" + task};
}

inline Environment lsf() {
  return {"LSB_JOBID=77", "LSB_JOBINDEX=0", "LSB_HOSTS=h1 h1 h2 h2", "LSB_MCPU_HOSTS=h1 2 h2 2", "LSB_DJOB_NUMPROC=4"};
}

inline Environment grid_engine() {
  return {"JOB_ID=9", "SGE_ROOT=/opt/sge", "SGE_TASK_ID=undefined", "PE_HOSTFILE=/spool/9.1/pe_hostfile", "NHOSTS=2",
          "NSLOTS=4", "RESTARTED=0"};
}

/// The training operator of Kubeflow for a fixed number of replicas.
inline Environment training_operator() {
  return {"MASTER_ADDR=job-master-0",
          "MASTER_PORT=23456",
          "WORLD_SIZE=2",
          "RANK=1",
          "PYTHONUNBUFFERED=1",
          "PET_MASTER_ADDR=job-master-0",
          "PET_MASTER_PORT=23456",
          "PET_NODE_RANK=1",
          "PET_NNODES=2",
          "PET_NPROC_PER_NODE=auto"};
}

}  // namespace tensorplay::agent::recorded
