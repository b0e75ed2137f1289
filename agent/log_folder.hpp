/// Where a run's files lie: `<log-dir>/<run id>_<random>/attempt_<round>/<local rank>/`. Folders are made when the
/// first file in them is, and never anything that nobody asked for.
#pragma once

#include <string>

namespace tensorplay::agent {

/// Thread rules: none; one owner.
class LogFolder {
 public:
  /// `log_dir` empty: a folder of its own below TMPDIR, made when it is needed, kept at the end.
  LogFolder(std::string log_dir, std::string run_id) : log_dir_(std::move(log_dir)), run_id_(std::move(run_id)) {}

  /// `attempt_<round>`, made when it is not there. Throws DistError with the path and the errno text.
  const std::string& attempt(int round);

  /// A worker's folder below it. The same.
  std::string worker(int round, int local_rank);

  /// Folder of this run; empty when none was made.
  const std::string& run() const { return run_; }

 private:
  void make_run();

  std::string log_dir_;
  std::string run_id_;
  std::string run_;
  std::string attempt_;
  int attempt_round_ = -1;
};

/// Whether a run's folder can be made below `log_dir` (made when it is not there; empty: TMPDIR). Throws DistError as
/// LogFolder does; leaves nothing else.
void check_log_parent(const std::string& log_dir);

/// A private folder (mode 0700) for the error files of a run without a log folder: made when it is needed, gone with
/// this object. It lies in TMPDIR, else in /dev/shm, else in /tmp; a TMPDIR that is missing is not made.
class ErrorFolder {
 public:
  ErrorFolder() = default;
  ~ErrorFolder();

  /// Chooses the folder's name for this process and its children: the guardian calls it before there is an agent, so
  /// that it can remove what a killed agent leaves.
  static void choose_name();
  /// Removes the folder by the chosen name, if it is there.
  static void remove_chosen();

  ErrorFolder(const ErrorFolder&) = delete;
  ErrorFolder& operator=(const ErrorFolder&) = delete;

  /// A path for one worker's error file; empty when no folder can be made, as a job must not fail for that.
  std::string file(int round, int local_rank);

 private:
  std::string path_;
  bool has_failed_ = false;
};

}  // namespace tensorplay::agent
