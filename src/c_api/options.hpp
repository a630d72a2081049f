// Options by the names that C gives them, those of the command.
#pragma once

#include <arenite/model.hpp>
#include <arenite/train/trainer.hpp>

#include <string_view>

namespace arenite::c_api {

/// Of a trainer, and of the epochs that it begins.
struct TrainingOptions {
  train::TrainerOptions of_trainer;
  train::FitOptions of_fit;
  bool has_batch = false;  ///< somebody has set it
};

/// Throw Error on a name that there is not, and on a value that it does not have.
void set_option(ModelOptions& options, std::string_view name, std::string_view value);
void set_option(TrainingOptions& options, std::string_view name, std::string_view value);

}  // namespace arenite::c_api
