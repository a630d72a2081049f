// Runs in files: a network that was trained, without the program that built it.
//
//   const train::SavedRun run = train::saved_run("run.st");
//   train::Trainer trainer(session, run.build, options_on(run, session));
//   trainer.take_states("run.st");
//   trainer.predict(samples);
#pragma once

#include <arenite/model.hpp>
#include <arenite/train/trainer.hpp>

#include <filesystem>

namespace arenite::train {

struct SavedRun {
  Build build;
  TrainerOptions options;  ///< its batch, optimizer, first values, cut, fusion and products
  int epochs = 0;          ///< done
  long steps = 0;
  SavedWords said;  ///< what Trainer::save was given beside it
};

/// Of a file that Trainer::save has written. Throws Error on one that is damaged or none of these,
/// and on a network whose batch is not open: one that another number of samples would build
/// otherwise, in more than this number.
SavedRun saved_run(const std::filesystem::path& path);

/// Its options where that can be trained: products in tfloat32, which processors have not, are in
/// float32 there, and so have other bits.
TrainerOptions options_on(const SavedRun& run, const runtime::Session& session);

}  // namespace arenite::train
