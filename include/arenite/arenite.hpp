// Everything a program that trains networks needs; the parts can be included one by one.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/graph.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/json.hpp>
#include <arenite/plan/plan.hpp>
#include <arenite/plan/problem.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/static_allocator.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/plan/verify.hpp>
#include <arenite/random.hpp>
#include <arenite/runtime/program.hpp>
#include <arenite/runtime/session.hpp>
#include <arenite/train/optimizer.hpp>
#include <arenite/train/trainer.hpp>
#include <arenite/types.hpp>
