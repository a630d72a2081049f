// What predictions of classes are worth: which classes are taken for which, and how far down the
// right one stands.
//
// Scores are predictions [M, classes] of real numbers, logits or shares: the more, the likelier. Of
// equal ones the first class counts as the higher. Labels are a column of integers [M]; functions
// throw Error on other shapes and types, and on labels that are none of the classes.
#pragma once

#include <arenite/samples.hpp>
#include <arenite/train/trainer.hpp>

#include <cstdint>
#include <vector>

namespace arenite::train {

/// Numbers of samples by their class, and by the class with their highest score. Scores of which
/// one is NaN, or the highest infinite, whose softmax is no number, stand for no class.
struct Confusion {
  std::int64_t classes = 0;
  std::vector<std::int64_t> counts;      ///< [classes, classes]: a row for each label
  std::vector<std::int64_t> unanswered;  ///< [classes]: samples of a label that stand for no class

  std::int64_t count(std::int64_t label, std::int64_t taken_for) const {
    return counts.at(static_cast<std::size_t>(label * classes + taken_for));
  }
  std::int64_t of_class(std::int64_t label) const;   ///< samples
  std::int64_t taken_for(std::int64_t label) const;  ///< likewise
  double accuracy() const;                           ///< 0 to 1, and likewise the next two
  double recall(std::int64_t label) const;           ///< of its samples; NaN: there are none
  double precision(std::int64_t label) const;        ///< of those taken for it; likewise
};

Confusion confusion(const Predictions& scores, const Column& labels);

/// The part of samples whose class is among the `k` with the highest scores, which those that stand
/// for no class are not. Throws Error as well
/// where k is not 1 to the number of classes.
double top_k(const Predictions& scores, const Column& labels, std::int64_t k);

struct Guess {
  std::int64_t label = 0;
  double share = 0;  ///< 0 to 1; NaN where the score is
};

/// For each sample the `k` likeliest classes, one behind the other. Shares are the softmax of
/// scores, or these where they are shares already: from 0 to 1, with a sum within 0.001 of 1. A
/// score that is no number has none, comes last, and takes nothing from the others.
std::vector<Guess> guesses(const Predictions& scores, std::int64_t k);

}  // namespace arenite::train
