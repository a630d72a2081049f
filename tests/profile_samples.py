"""Samples for the tests of scripts/profile."""
from collections import Counter

# As perf 6.1 tells samples of `arenite train`, shortened.
RECORDED = """\
CPU 0 27309/27351 
\t    7fbd7d8b50df xsmm gemm m48 n32 k241 accumulates (/tmp/perf-27309.map)
\t    7fbd8041a094 forward dense_relu dense1 [xsmm] (/tmp/perf-27309.map)
\t          504e60 arenite::runtime::run_body (/home/me/build/release/arenite)
\t          4ed3e3 arenite::runtime::Crew::perform (/home/me/build/release/arenite)
\t          4ed640 arenite::runtime::Crew::work (/home/me/build/release/arenite)
\t    55f2661b5a08 [unknown] ([unknown])
\te483485354415541 [unknown] ([unknown])

CPU 1 27309/27352 
\t          30d500 arenite::codelets::conv2d_relu_max_pool2d::(anonymous namespace)::add_windows<2, 3, 3, true> (/home/me/build/release/arenite)
\t          2f9209 arenite::codelets::conv2d_relu_max_pool2d::(anonymous namespace)::run (/home/me/build/release/arenite)
\t    7fbd8041a094 backward conv2d_relu_max_pool2d_grad_input conv2 [sparse] (/tmp/perf-27309.map)
\t          504e60 arenite::runtime::run_body (/home/me/build/release/arenite)
\t          4ed3e3 arenite::runtime::Crew::perform (/home/me/build/release/arenite)
\t          4ed640 arenite::runtime::Crew::work (/home/me/build/release/arenite)

CPU 1 27309/27352 
\tffffffff813a2293 finish_task_switch.isra.0 ([kernel.kallsyms])
\tffffffff821f2e25 irqentry_exit_to_user_mode ([kernel.kallsyms])
\tffffffff81000e46 asm_sysvec_reschedule_ipi ([kernel.kallsyms])
\t          2f9209 arenite::codelets::conv2d_relu_max_pool2d::(anonymous namespace)::run (/home/me/build/release/arenite)
\t    7fbd8041a094 backward conv2d_relu_max_pool2d_grad_input conv2 [sparse] (/tmp/perf-27309.map)
\t          504e60 arenite::runtime::run_body (/home/me/build/release/arenite)

CPU 0 27309/27351 
\tffffffff813a2293 finish_task_switch.isra.0 ([kernel.kallsyms])
\tffffffff821f7d14 __schedule ([kernel.kallsyms])
\tffffffff813ccfda __x64_sys_sched_yield ([kernel.kallsyms])
\tffffffff821ec951 do_syscall_64 ([kernel.kallsyms])
\tffffffff81000130 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])
\t           ee017 __sched_yield (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           f8f57 [unknown] (/usr/lib/x86_64-linux-gnu/libstarpu-1.3.so.9.0.0)
\t    5625acce63a0 [unknown] ([unknown])

CPU 0 27309/27351 
\t          4ed640 arenite::runtime::Crew::take (/home/me/build/release/arenite)
\t          4ed640 arenite::runtime::Crew::work (/home/me/build/release/arenite)
\t    5625acce63a0 [unknown] ([unknown])

CPU 0 27309/27351 
\t          4ed640 arenite::runtime::Crew::release (/home/me/build/release/arenite)
\t          4ed3e3 arenite::runtime::Crew::perform (/home/me/build/release/arenite)
\t          4ed640 arenite::runtime::Crew::work (/home/me/build/release/arenite)

CPU 0 27309/27351 
\t    7fbd7d8b50df xsmm transpose 64x32 (/tmp/perf-27309.map)

arenite 27309/27309 
\tffffffff816c4596 do_anonymous_page ([kernel.kallsyms])
\tffffffff816c4596 __handle_mm_fault ([kernel.kallsyms])
\tffffffff816c4596 handle_mm_fault ([kernel.kallsyms])
\tffffffff821f2486 exc_page_fault ([kernel.kallsyms])
\tffffffff81000c82 asm_exc_page_fault ([kernel.kallsyms])
\t          4ed640 arenite::data::(anonymous namespace)::draw (/home/me/build/release/arenite)
\t          4ed640 main (/home/me/build/release/arenite)
\t           271ca __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           27285 __libc_start_main@@GLIBC_2.34 (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          123456 _start (/home/me/build/release/arenite)

"""

# Stacks of two runs.
OLD = Counter({("worker 0", "forward", "a"): 5000, ("worker 0", "forward", "b"): 3000, ("worker 0", "forward", "gone"): 2000})
NEW = Counter({("worker 0", "forward", "a"): 1500, ("worker 0", "forward", "b"): 305, ("worker 0", "forward", "new"): 195})
