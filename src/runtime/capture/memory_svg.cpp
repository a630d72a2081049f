#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/plan/svg.hpp"
#include "src/plan/text.hpp"
#include "src/runtime/capture/writers.hpp"

namespace arenite::runtime {
namespace {

using plan::bytes_text;
using plan::decimal;
using plan::svg::Canvas;
using plan::svg::left;
using plan::svg::Palette;
using plan::svg::plot_width;

constexpr double worker_height = 18, row_height = 17, block_gap = 92;

/// The one that was disturbed least.
const RecordedStep& fastest_step(const CapturedProgram& program) {
  return *std::ranges::min_element(program.steps, {}, [&](const RecordedStep& step) {
    return duration(program.shape, step).length();
  });
}

/// What a value has of its bytes in one step: used, and kept from all others.
struct Stay {
  Span used, kept;
};

/// A byte is kept for its tenant from the end of the one before it to the begin of the next.
std::vector<Stay> stays(const CaptureShape& shape, const RecordedStep& step, Span time) {
  std::vector<Stay> all(shape.tenants.size(), Stay{.used = {}, .kept = time});
  for (std::size_t i = 0; i < all.size(); ++i) all[i].used = lifetime(shape, step, i);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const CaptureShape::Tenant& mine = shape.tenants[i];
    for (std::size_t j = 0; j < all.size(); ++j) {
      const CaptureShape::Tenant& other = shape.tenants[j];
      if (i == j || mine.block != other.block || other.offset >= mine.offset + mine.bytes ||
          mine.offset >= other.offset + other.bytes)
        continue;
      if (all[j].used.end <= all[i].used.begin)
        all[i].kept.begin = std::max(all[i].kept.begin, all[j].used.end);
      if (all[j].used.begin >= all[i].used.end)
        all[i].kept.end = std::min(all[i].kept.end, all[j].used.begin);
    }
  }
  return all;
}

class Picture {
 public:
  Picture(const CapturedSet& set, const CapturedProgram& program)
      : set_(set),
        program_(program),
        shape_(program.shape),
        step_(fastest_step(program)),
        time_(duration(shape_, step_)),
        stays_(stays(shape_, step_, time_)),
        palette_(kinds()),
        canvas_(body_) {}

  std::string draw() {
    double y = palette_.legend(body_, 16);
    canvas_.key(y + 6, {{"live", "live bytes, measured"},
                        {"peak", "planned peak"},
                        {"bound", "lower bound of any plan"},
                        {"gone", "bytes that no step wrote"}});
    y += 28;
    body_ += "<rect class=\"c0\" x=\"" + plan::svg::px(left) + "\" y=\"" + plan::svg::px(y - 8) +
             "\" width=\"22\" height=\"12\"/>";
    canvas_.text(left + 28, y + 2, "", "in use, measured: first to last access");
    body_ += "<rect class=\"c0 kept\" x=\"" + plan::svg::px(left + 290) + "\" y=\"" +
             plan::svg::px(y - 8) + "\" width=\"22\" height=\"12\"/>";
    canvas_.text(left + 318, y + 2, "",
                 "kept for the value by the plan: nobody else has the bytes");
    y += 48;
    for (std::size_t block = 0; block < shape_.blocks.size(); ++block) y = draw_block(block, y);
    y = table(y - 30);
    return plan::svg::document(
        y,
        palette_.css() +
            ".kept{fill-opacity:.28}.gone{stroke:#c0272d;stroke-width:6}.work rect{stroke:#fff}",
        body_);
  }

 private:
  std::vector<Palette::Kind> kinds() const {
    std::vector<Palette::Kind> all;
    for (const auto& tenant : shape_.tenants) all.emplace_back(tenant.phase, tenant.label);
    for (const auto& task : shape_.tasks) all.emplace_back(task.phase, "tasks");
    return all;
  }

  double x(std::int64_t when) const {
    return left + plot_width * static_cast<double>(when - time_.begin) /
                      static_cast<double>(std::max<std::int64_t>(1, time_.length()));
  }
  std::string microseconds(std::int64_t when) const {
    return decimal(static_cast<double>(when - time_.begin) * 1e-3, 1);
  }

  double draw_block(std::size_t number, double top) {
    const CaptureShape::Block& block = shape_.blocks[number];
    const double height = shape_.blocks.size() == 1 ? 480 : 320;
    const auto y =
        [&, most = static_cast<double>(std::max<std::int64_t>(1, block.peak))](double address) {
          return top + height - (height - 18) * std::min(address, most) / most;
        };
    canvas_.heading(top - 12,
                    "block " + block.name + " in step " + std::to_string(step_.number) + " of '" +
                        shape_.steps.program + "'",
                    facts(number));
    canvas_.addresses(block.peak, y);
    canvas_.times(0, time_.length() / 1000, top + height,
                  [&](std::int64_t us) { return x(time_.begin + us * 1000); });
    canvas_.text(plan::svg::picture_width - plan::svg::right, top + height + 32,
                 " text-anchor=\"end\"", "µs since the step's first task began");
    boxes(number, y);
    std::vector<std::pair<double, std::int64_t>> changes;
    for (const auto& [when, bytes] : live(number)) changes.emplace_back(x(when), bytes);
    canvas_.live(left, x(time_.end), changes, y);
    canvas_.names();
    untouched(block, y);
    canvas_.levels({.peak = block.peak, .bound = block.lower_bound, .optimal = block.optimal}, y);
    return workers(top + height + 40) + block_gap;
  }

  std::string facts(std::size_t number) const {
    const CaptureShape::Block& block = shape_.blocks[number];
    const std::size_t met = clashes(program_);
    return "planned " + bytes_text(block.peak) + " · most live at once " +
           bytes_text(most_live(number)) + " · " +
           (met == 0 ? "no byte had two tenants at once in " +
                           std::to_string(program_.steps.size()) + " recorded steps"
                     : "TENANTS OF ONE BYTE MET " + std::to_string(met) + " TIMES");
  }

  template <class Y>
  void boxes(std::size_t block, Y y) {
    body_ += "<g class=\"boxes\" stroke-width=\"0.6\">\n";
    for (const bool used : {false, true}) {
      for (std::size_t i = 0; i < stays_.size(); ++i) {
        const CaptureShape::Tenant& tenant = shape_.tenants[i];
        if (tenant.block != block) continue;
        const Span span = used ? stays_[i].used : stays_[i].kept;
        const double y0 = y(static_cast<double>(tenant.offset + tenant.bytes));
        const double height = std::max(0.3, y(static_cast<double>(tenant.offset)) - y0);
        const plan::svg::Box box{x(span.begin), y0, std::max(0.3, x(span.end) - x(span.begin)),
                                 height};
        canvas_.box(box, palette_.css_class({tenant.phase, tenant.label}) + (used ? "" : " kept"),
                    title(i));
        if (used) canvas_.name(box, tenant.name, bytes_text(tenant.bytes));
      }
    }
    body_ += "</g>\n";
  }

  std::string title(std::size_t i) const {
    const CaptureShape::Tenant& tenant = shape_.tenants[i];
    const Stay& stay = stays_[i];
    return tenant.name + "\n" + digits(tenant.bytes) + " bytes at offset " + digits(tenant.offset) +
           "\nin use " + microseconds(stay.used.begin) + " to " + microseconds(stay.used.end) +
           " µs, kept " + microseconds(stay.kept.begin) + " to " + microseconds(stay.kept.end) +
           " µs\n" + std::string(to_string(tenant.phase)) + ", " + tenant.label;
  }

  /// Bytes in use from each time at which they change.
  std::vector<std::pair<std::int64_t, std::int64_t>> live(std::size_t block) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      if (shape_.tenants[i].block != block) continue;
      changes.emplace_back(stays_[i].used.begin, shape_.tenants[i].bytes);
      changes.emplace_back(stays_[i].used.end, -shape_.tenants[i].bytes);
    }
    std::ranges::sort(changes);
    std::int64_t sum = 0;
    for (auto& [when, bytes] : changes) bytes = sum += bytes;
    return changes;
  }

  std::int64_t most_live(std::size_t block) const {
    std::int64_t most = 0;
    for (const auto& [when, bytes] : live(block)) most = std::max(most, bytes);
    return most;
  }

  template <class Y>
  void untouched(const CaptureShape::Block& block, Y y) {
    for (const CapturedBlock& use : set_.blocks) {
      if (use.name != block.name) continue;
      for (const Span& span : use.untouched) {
        if (span.begin >= block.peak) continue;
        canvas_.line(left - 4, y(static_cast<double>(span.begin)), left - 4,
                     y(static_cast<double>(span.end)), "gone");
      }
    }
  }

  /// What each worker did meanwhile.
  double workers(double top) {
    body_ += "<g class=\"work\">\n";
    for (std::size_t worker = 0; worker < shape_.steps.workers; ++worker) {
      const double y = top + worker_height * static_cast<double>(worker);
      canvas_.text(left - 8, y + 12, " text-anchor=\"end\"", "worker " + std::to_string(worker));
      for (std::size_t t = 0; t < step_.runs.size(); ++t) {
        if (step_.runs[t].worker != static_cast<int>(worker)) continue;
        const Span span = step_.runs[t].time();
        if (span.begin < time_.begin) continue;  // staging, ahead of the step
        const plan::svg::Box box{x(span.begin), y, std::max(0.3, x(span.end) - x(span.begin)),
                                 worker_height - 3};
        canvas_.box(box, palette_.css_class({shape_.tasks[t].phase, "tasks"}),
                    shape_.tasks[t].name + "\n" + microseconds(span.begin) + " to " +
                        microseconds(span.end) + " µs");
        canvas_.name(box, shape_.tasks[t].name, "");
      }
    }
    canvas_.names();
    body_ += "</g>\n";
    return top + worker_height * static_cast<double>(shape_.steps.workers);
  }

  double table(double y) {
    const auto cell = [&](double at, const std::string& words) {
      canvas_.text(left + at, y, at == 0 ? "" : " text-anchor=\"end\"", words);
    };
    const auto row = [&](const std::string& name, std::int64_t planned, std::int64_t resident,
                         const std::string& touched) {
      cell(0, name);
      cell(300, bytes_text(planned));
      cell(420, bytes_text(resident));
      cell(600, touched);
      y += row_height;
    };
    cell(0, "every block");
    cell(300, "planned");
    cell(420, "resident");
    cell(600, "written by steps so far");
    y += row_height;
    std::int64_t planned = 0, resident = 0;
    for (const CapturedBlock& use : set_.blocks) {
      planned += use.bytes;
      resident += use.resident;
      row(use.name, use.bytes, use.resident,
          use.touched < 0
              ? "–"
              : bytes_text(use.touched) + " (" +
                    decimal(100.0 * static_cast<double>(use.touched) /
                                static_cast<double>(std::max<std::int64_t>(1, use.bytes)),
                            1) +
                    " %)");
    }
    row("all blocks", planned, resident, "");
    cell(0, "the whole process, with its data set, code and libraries");
    cell(420, bytes_text(set_.resident));
    cell(600, "at most " + bytes_text(set_.most_resident));
    return y + row_height + 6;
  }

  const CapturedSet& set_;
  const CapturedProgram& program_;
  const CaptureShape& shape_;
  const RecordedStep& step_;
  Span time_;
  std::vector<Stay> stays_;
  Palette palette_;
  std::string body_;
  Canvas canvas_;
};

std::int64_t planned_bytes(const CapturedProgram& program) {
  std::int64_t sum = 0;
  for (const CaptureShape::Block& block : program.shape.blocks) sum += block.peak;
  return sum;
}

}  // namespace

std::string to_memory_svg(const CapturedProcess& captured) {
  const CapturedSet* set = nullptr;
  const CapturedProgram* largest = nullptr;
  for (const CapturedSet& one : captured.sets) {
    for (const CapturedProgram& program : one.programs) {
      if (largest && planned_bytes(program) <= planned_bytes(*largest)) continue;
      set = &one;
      largest = &program;
    }
  }
  if (!largest) {
    std::string body;
    Canvas(body).heading(40, "no step was recorded", "programs on GPUs are not");
    return plan::svg::document(80, "", body);
  }
  return Picture(*set, *largest).draw();
}

}  // namespace arenite::runtime
