"""The tables of docs/performance, one for each form of report: JSON in, lines of Markdown out."""
from performance_layers import layers


def compared(report):
    yield (f"## Filtering beside OpenCV {report['opencv']}\n\n{report['cpu']}, {report['threads']} threads, commit {report['commit']}, "
           f"{report['date'][:10]}; {report['peak_tflops']:.3f} TFLOP/s of multiply-adds, {report['peak_gbps']:.1f} GB/s of copying, measured in the same "
           "run. Weights are random (of full rank, no integers) unless named; border `replicate`. The last column is the largest difference of the two results.\n\n"
           "| problem | OpenCV's | omniconv, Mpixel/s | OpenCV, Mpixel/s | ratio (95 %) | difference |\n| --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        height, width = (int(result["problem"].split("h")[1].split("w")[0]), int(result["problem"].split("w")[1].split("c")[0]))
        rate = lambda milliseconds: f"{height * width / milliseconds / 1e3:.0f}"
        low, high = result["ratio_ci95"]
        yield (f"| `{result['problem']}` | `{result['peer']}` | {rate(result['median_ms'])} | {rate(result['opencv_median_ms'])} | {result['ratio']:.2f} "
               f"({low:.2f} to {high:.2f}) | {result['largest_difference']:g} |\n")


def compared_layers(report):
    passes = {"fwd": "Forward", "bwd_data": "Backward to the data", "bwd_filter": "Backward to the filter"}
    which, is_best = passes[report.get("pass", "fwd")], report.get("peer") == "best"
    yield (f"## {which}: convolutions {'in bf16 ' if report.get('type') == 'bf16' else ''}beside oneDNN {report['onednn']}{', its Winograd too' if is_best else ''}{', filters prepared' if report.get('prepared') else ''}\n\n{report['cpu']}, {report['threads']} threads, commit {report['commit']}, {report['date'][:10]}; "
           f"{report['peak_tflops']:.3f} TFLOP/s of multiply-adds, measured in the same run. {'bf16' if report.get('type') == 'bf16' else 'fp32'}, nchw in and out on both sides; oneDNN's {'fastest' if is_best else 'direct'} convolution, in turn "
           f"with omniconv, weights that it reads reordered beforehand, and other arrays within the run where that is faster{'; omniconv has its own prepared, too' if report.get('prepared') else ''}. The difference is the largest of the two results, relative to the largest value.\n\n"
           "| problem | solver | omniconv, GFLOP/s | oneDNN, GFLOP/s | ratio (95 %) | difference | oneDNN ran |\n| --- | --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        low, high = result["ratio_ci95"]
        yield (f"| `{result['problem']}` | `{result['solver']}` | {result['gflops']:.0f} | {result['onednn_gflops']:.0f} | {result['ratio']:.2f} ({low:.2f} to {high:.2f}) | "
               f"{result['largest_difference']:.2g} | {result['onednn']} |\n")
    yield f"\nGeometric mean of the ratios: {report['geometric_mean']:.2f}.\n"


def compared_products(report):
    device = report["device"]
    yield (f"## {device['name']} ({device['driver']}): matrix products beside CLBlast {report['clblast']}\n\nCommit {report['commit']}, {report['date'][:10]}; "
           f"{significant(report['peak_tflops'])} TFLOP/s of multiply-adds, measured in the same run. fp32 on one OpenCL queue, in turns of several runs; of small integers both sides' "
           "results were compared bit by bit. The difference is the largest of random data, relative to the largest value.\n\n"
           "| problem | solver | omniconv, TFLOP/s | CLBlast, TFLOP/s | ratio (95 %) | integers | difference |\n| --- | --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        low, high = result["ratio_ci95"]
        yield (f"| `{result['problem']}` | `{result['solver']}` | {significant(result['tflops'])} | {significant(result['clblast_tflops'])} | {result['ratio']:.2f} ({low:.2f} to {high:.2f}) | "
               f"{result['integers']} | {result['largest_difference']:.2g} |\n")
    yield f"\nGeometric mean of the ratios: {report['geometric_mean']:.2f}.\n"


def significant(value):
    return f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def operations(results):
    kinds = {"filter2d": "filters", "gemm": "matrix products", "pool2d": "pooling", "activation": "activations",
             "bias_add": "biases", "add": "shortcuts", "batch_norm": "batch normalisations", "dropout": "dropout", "loss": "losses", "norm": "norms", "update": "updates", "batch": "batches"}
    return " and ".join(dict.fromkeys(kinds.get(result["problem"].split()[0], "convolutions") for result in results))


def benched(report):
    device, results = report["device"], report["results"]
    versus = next((result["vs"]["solver"] for result in results if "vs" in result), None)
    yield (f"## {device['name']} ({device['driver']}): {operations(results)}\n\nCommit {report['commit']}, {report['date'][:10]}; {significant(device['peak_tflops'])} TFLOP/s of "
           f"multiply-adds, {device['peak_gbps']:.0f} GB/s of copying, measured.\n\n"
           f"| problem | solver | ms (95 %) | TFLOP/s | GB/s | share of the floor |{f' times as fast as {versus} (95 %) |' if versus else ''}\n"
           f"| --- | --- | --- | --- | --- | --- |{' --- |' if versus else ''}\n")
    for result in results:
        low, high = result["ci95_ms"]
        if result["status"] != "ok":
            yield f"| `{result['problem']}` | `{result['solver']}` | {result['status']}: {result['reason']} | | | |{' |' if versus else ''}\n"
            continue
        yield (f"| `{result['problem']}` | `{result['solver']}` | {result['median_ms']:.3f} ({low:.3f} to {high:.3f}) | {result['tflops']:.{2 if result['tflops'] >= 1 else 3}f} | "
               f"{result['gbps']:.0f} | {100 * result['roofline']:.0f} % |{beside(result.get('vs')) if versus else ''}\n")


def beside(versus):
    if versus is None or versus["status"] != "ok":
        return f" {'' if versus is None else versus['status']} |"
    low, high = versus["ratio_ci95"]
    return f" {versus['ratio']:.2f} ({low:.2f} to {high:.2f}) |"


def files(report):
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    if report["pixels"] < 1e6:
        yield from small_files(report, versions)
        return
    yield (f"## Whole files beside ImageMagick and libvips\n\n{report['cpu']}, {report['threads']} threads, commit {report['commit']}, "
           f"{report['date'][:10]}; {versions}. From file to file in memory, {report['pixels'] / 1e6:.0f} megapixels of RGB, start of the program included, "
           f"medians of {min(r['rounds'] for r in report['results'])} runs in turn or more, in Mpixel/s. The codec's share is that of reading and writing in the time of all stages, which "
           "omniconv runs side by side; the ratio is to the faster of the two others.\n\n"
           "| file, kernel | omniconv | ImageMagick | libvips | ratio | reads, computes, writes (s) | codec's share | largest difference | peak memory (MB) |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        programs = result["programs"]
        rate = lambda name: report["pixels"] / programs[name]["median_seconds"] / 1e6
        peers = [rate("ImageMagick"), rate("libvips integer")]
        yield (f"| {result['format']}, {result['kernel']} | {rate('omniconv'):.1f} | {peers[0]:.1f} | {peers[1]:.1f} | "
               f"{rate('omniconv') / max(peers):.2f} | {result['read_seconds']:.2f}, {result['compute_seconds']:.2f}, {result['write_seconds']:.2f} | "
               f"{100 * result['codec_share']:.0f} % | {max(p['largest_difference'] for p in programs.values())} | "
               f"{programs['omniconv']['peak_bytes'] / 2**20:.0f}, {programs['ImageMagick']['peak_bytes'] / 2**20:.0f}, "
               f"{programs['libvips integer']['peak_bytes'] / 2**20:.0f} |\n")


def small_files(report, versions):
    yield (f"## Small files beside ImageMagick and libvips\n\n{report['cpu']}, {report['threads']} threads, commit {report['commit']}, "
           f"{report['date'][:10]}; {versions}. From file to file in memory, {report['pixels'] / 1e3:.0f} kilopixels of RGB, start of the program included, "
           f"medians of {min(r['rounds'] for r in report['results'])} runs in turn or more, in milliseconds. The ratio is that of the faster of the two others.\n\n"
           "| file, kernel | omniconv | ImageMagick | libvips | ratio | largest difference |\n| --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        programs = result["programs"]
        ours, magick, vips = (1e3 * programs[name]["median_seconds"] for name in ("omniconv", "ImageMagick", "libvips integer"))
        yield (f"| {result['format']}, {result['kernel']} | {ours:.1f} | {magick:.1f} | {vips:.1f} | {min(magick, vips) / ours:.2f} | "
               f"{max(p['largest_difference'] for p in programs.values())} |\n")


def huge(report):
    yield (f"## Larger than memory: {report['side']} x {report['side']} RGB as TIFF, in {report['layout']}\n\nCommit {report['commit']}, "
           f"{report['date'][:10]}, {report['threads']} threads, `--max-memory {report['max_memory_mb']}M`; a sample of rows was compared with NumPy.\n\n"
           "| run | seconds | Mpixel/s | reads, computes, writes (s), side by side | planned (MB) | peak of the process (MB) |\n"
           "| --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        stages = ", ".join(f"{result[key] / 1e3:.1f}" for key in ("read_ms", "compute_ms", "write_ms"))
        yield (f"| {result['run']} | {result['seconds']:.1f} | {report['side'] ** 2 / result['seconds'] / 1e6:.0f} | {stages} | "
               f"{result['planned_bytes'] / 2**20:.0f} | {result['peak_bytes'] / 2**20:.0f} |\n")


def peers(report):
    device = report["results"][0]["device"]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    yield (f"## {device['name']} beside {versions}\n\nu8, {report['results'][0]['side']} pixels along each side, weights random (of full rank, no integers), device time, data "
           f"resident; omniconv on {device['id']}, commit {report['commit']}, {report['date'][:10]}. NPP and CV-CUDA under `replicate`, CuPy under `reflect`; the ratio "
           "is the peer's time divided by omniconv's of the same border.\n\n"
           "| channels, kernel | omniconv (ms) | peer | its call | ms | ratio | largest difference |\n| --- | --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        for peer in result["peers"]:
            ours = result["omniconv"][peer["border"]]["median_ms"]
            yield (f"| {result['channels']}, {result['size']}x{result['size']} | {ours:.3f} | {peer['name']} | `{peer['call']}` | {peer['median_ms']:.3f} | "
                   f"{peer['ratio']:.2f} | {peer['largest_difference']:.3g} |\n")


def end_to_end(report):
    yield (f"## {report['device']['name']} ({report['device']['id'].split(':')[0]}), from host memory to host memory\n\nPageable memory, {report['in_flight']} strips on the device at once; "
           f"commit {report['commit']}, {report['date'][:10]}. Copies are the same run without kernels, in turn with the filter.\n\n"
           "| problem | filter (ms, 95 %) | copies (ms, 95 %) | ratio (95 %) | bits |\n| --- | --- | --- | --- | --- |\n")
    time = lambda side: f"{side['median_ms']:.1f} ({side['ci95_ms'][0]:.1f} to {side['ci95_ms'][1]:.1f})"
    for result in report["results"]:
        low, high = result["ratio_ci95"]
        yield (f"| `{result['problem']}` | {time(result['filter'])} | {time(result['copies'])} | {result['ratio']:.3f} ({low:.3f} to {high:.3f}) | "
               f"{result['bits']} |\n")


def huge_gpu(report):
    device = next(result["device_name"] for result in report["results"] if result["device"] != "cpu")
    unlimited = max((result.get("device_bytes_without_limit", 0) for result in report["results"]), default=0)
    tall = f", and *tall* has strips as tall as the limit allows, which without it would take {unlimited / 1e6:.0f} MB" if unlimited else ""
    yield (f"## {device}: {report['width']} x {report['height']} gray through {report['device_memory_bytes'] / 2**30:g} GiB of its memory\n\nA PGM file in memory, "
           f"`omniconv filter`; commit {report['commit']}, {report['date'][:10]}. The first run on the device compiles, the second finds the programs{tall}; every byte of theirs "
           f"{'is' if report['passed'] else 'IS NOT'} the CPU's. Milliseconds; stages run side by side.\n\n"
           "| kernel | run | total | context | compilation | reads | copies in | kernels | copies out | writes | rows of a strip | device memory (MB) |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        stages = " | ".join(f"{result[key]:.0f}" for key in ("total_ms", "context_ms", "compile_ms", "read_ms", "copy_in_ms", "kernel_ms", "copy_out_ms", "write_ms"))
        yield f"| `{result['kernel']}` | {result['run']} | {stages} | {result['strip_rows']} | {result['device_bytes'] / 1e6:.0f} |\n"


def gpu_check(report):
    names = dict.fromkeys(step["step"].split(":")[0] for step in report["steps"])
    yield (f"## The GPU check: {', '.join(name for name in names if name not in ('build', 'devices'))}\n\n`scripts/gpu-check.sh`, commit {report['commit']}, {report['date'][:10]}, {report['seconds']} s: "
           f"{report['passed']} passed, {report['failed']} failed.\n\n| step | seconds | passed | failed | |\n| --- | --- | --- | --- | --- |\n")
    for step in report["steps"]:
        yield f"| {step['step']} | {step['seconds']} | {step['passed']} | {step['failed']} | {step['detail']} |\n"


def random_problems(report):
    device, (first, last) = report["device"], report["seeds"]
    of_all = {name: sum(solver[name] for solver in report["solvers"]) for name in ("passed", "failed")}
    yield (f"## Random problems on {device['name']} ({device['driver']})\n\n`omniconv verify --random {report['problems_of_a_seed']} --seed S` for S from {first} to {last}, commit {report['commit']}, "
           f"{report['date'][:10]}: {report['problems']:,} problems by every solver of the device, {of_all['passed']:,} results checked, {of_all['failed']} wrong; {report['unserved']:,} problems no solver serves. "
           "The ratio is the largest error divided by its bound, where the bound is not zero.\n\n| solver | passed | failed | refused | largest ratio | of |\n| --- | --- | --- | --- | --- | --- |\n")
    for solver in report["solvers"]:
        of = f"`{solver['problem']}`" if solver["problem"] else ""
        yield f"| `{solver['solver']}` | {solver['passed']} | {solver['failed']} | {solver['refused']} | {solver['largest_ratio']:.3f} | {of} |\n"


def before_after(report):
    device, results = report["device"], report["results"]
    yield (f"## {device['name']} ({device['driver']}): commit {report['before']['commit']}, then {report['after']['commit']}\n\n`scripts/compare-times.py`, {report['date'][:10]}, both "
           f"in turns. A ratio is the later commit's time divided by the earlier one's; {sum(r['status'] == 'ok' and r['ratio_ci95'][0] > report['most'] for r in results)} of "
           f"{len(results)} intervals lie wholly beyond {report['most']:g}.\n\n| problem | solver | before, ms | after, ms | ratio (95 %) |\n| --- | --- | --- | --- | --- |\n")
    for result in results:
        if result["status"] != "ok":
            yield f"| `{result['problem']}` | {result['reason']} | | | |\n"
            continue
        before, after = result["before"], result["after"]
        solvers = " then ".join(dict.fromkeys(f"`{one['solver']}`" for one in (before, after)))
        low, high = result["ratio_ci95"]
        yield (f"| `{result['problem']}` | {solvers} | {before['median_ms']:.4f} | {after['median_ms']:.4f} | {result['ratio']:.3f} ({low:.3f} to {high:.3f}) |\n")


def errors(report):
    worse = [f"`{result['problem']}`" for result in report["results"] for data in ("signed", "non_negative") if result[data]["own"] > result[data]["chain"]]
    yield (f"## Errors on {report['device']['name']}, fp32\n\n`bench/conv2d_errors.cpp`, commit {report['commit']}, {report['date'][:10]}. The largest |error| / Σ|x·w| of sampled elements, in units of "
           "2⁻²⁴, beside that of a chain of fp32 multiply-adds in the order of the definition; on data of [-1, 1) and of [0, 1); of sums of few "
           "terms the mean of several draws' largest. "
           f"Above the chain's: {', '.join(dict.fromkeys(worse)) or 'none'}.\n\n"
           "| problem | solver | signed | chain | non-negative | chain |\n| --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        cells = [f"{result[data][which]:.2f}" for data in ("signed", "non_negative") for which in ("own", "chain")]
        yield f"| `{result['problem']}` | `{result['solver']}` | {' | '.join(cells)} |\n"


def training(report):
    device = report["device"]
    threads = f", {report['threads']} threads" if report["threads"] else ""
    of_peer = "its whole step as one CUDA graph, the batch gathered within it" if device["gpu"] else "its step as it is"
    yield (f"## Training on {device['name']}{threads}, beside PyTorch {report['pytorch']}\n\n`scripts/compare-training.py`, commit {report['commit']}, {report['date'][:10]}. Images a second of "
           f"`omniconv train`, data and all, and of PyTorch, {of_peer}, in the faster one of its memory formats; f32 without TF32, bf16 of PyTorch's by autocast.\n\n"
           "| model | batch | type | omniconv, images/s | a step, ms | PyTorch, images/s | ratio |\n| --- | --- | --- | --- | --- | --- | --- |\n")
    for row in report["rows"]:
        yield (f"| `{row['model']}` | {row['batch']} | {row['precision']} | {row['omniconv']:.0f} | {row['batch'] / row['omniconv'] * 1e3:.3f} | {row['pytorch']:.0f} | "
               f"{row['omniconv'] / row['pytorch']:.2f} |\n")


def accuracies(report):
    yield (f"## What networks find that were trained on {report['device']['name']}\n\n`scripts/compare-training.py --accuracy`, commit {report['commit']}, {report['date'][:10]}. The share of the images for "
           "the test that are found right behind the last epoch, of several seeds; options that are not named are the defaults; seconds are those of all epochs.\n\n"
           "| model | set | options | epochs | accuracies | median | seconds |\n| --- | --- | --- | --- | --- | --- | --- |\n")
    for row in report["rows"]:
        shown = sorted(row["accuracies"])
        yield (f"| `{row['model']}` | {row['dataset']} | {'`' + row['options'] + '`' if row['options'] else ''} | {row['epochs']} | {', '.join(f'{100 * one:.2f}' for one in row['accuracies'])} | "
               f"{100 * shown[len(shown) // 2]:.2f} % | {row['seconds']:.1f} |\n")
    yield "\n![losses of three seeds by epoch](training-curves.svg)\n\nThe losses by epoch, drawn by `scripts/training-plots.py`.\n"


def on_devices(report):
    first, *others = report["devices"]
    yield (f"## Training on {report['device']['name']} through {', '.join(report['devices'])}\n\n`scripts/compare-training.py --devices`, commit {report['commit']}, {report['date'][:10]}. Images a second, data and "
           "all, medians of three trainings in turns.\n\n"
           f"| model | batch | type | {' | '.join(report['devices'])} | {' | '.join(f'{other} ÷ {first}' for other in others)} |\n{'| --- ' * (3 + len(report['devices']) + len(others))}|\n")
    for row in report["rows"]:
        speeds = row["speeds"]
        yield (f"| `{row['model']}` | {row['batch']} | {row['precision']} | {' | '.join(f'{speeds[device]:.0f}' for device in report['devices'])} | "
               f"{' | '.join(f'{speeds[other] / speeds[first]:.2f}' for other in others)} |\n")


def predicting(report):
    device = report["device"]
    threads = f", {report['threads']} threads" if device["id"] == "cpu" else ""
    yield (f"## One image on {device['name']}{threads}, beside {report['rows'][0]['library']}, at {report['date'][11:16]}\n\n`scripts/compare-predict.py`, commit {report['commit']}, {report['date'][:10]}. From the image's "
           f"numbers on the host to the classes' logits there, f32{'; the peer runs a CUDA graph' if device['gpu'] else ''}: medians of many runs, in turns.\n\n"
           "| model | omniconv, µs | peer, µs | ratio |\n| --- | --- | --- | --- |\n")
    for row in report["rows"]:
        yield f"| `{row['model']}` | {row['omniconv'] * 1e6:.0f} | {row['peer'] * 1e6:.0f} | {row['peer'] / row['omniconv']:.2f} |\n"


def trained(report):
    """The ladder of a training, or the operations of its step."""
    if "ladder" in report:
        yield from ladder(report)
    else:
        yield from step_operations(report)


def heading(report):
    return f"`omniconv train {report['model']}`, commit {report['commit']}, {report['date'][:10]}. "


def device_of(report):
    return f"{report['device']['name']}, {'CUDA' if report['device']['id'].startswith('cuda') else 'OpenCL'}"


def ladder(report):
    steps = [step for step in report["ladder"] if "reason" not in step]
    kinds = list(dict.fromkeys(kind for step in steps for kind in step["operations"]))
    yield (f"## The classic study's ladder on {device_of(report)}: `{report['model']}`\n\n{heading(report)}Seconds an epoch of {report['dataset']['train']} images of {report['dataset']['name']}; "
           "below, of an epoch's operations, each timed by itself ([the study](../study.md)).\n\n")
    yield "| | " + " | ".join(step["rung"] for step in steps) + " |\n" + "| --- " * (len(steps) + 1) + "|\n"
    yield "| tile, results of a work item | " + " | ".join(f"{step.get('tile', '–')}, {step.get('work', '–')}" for step in steps) + " |\n"
    yield "| seconds an epoch | " + " | ".join(f"{step['seconds_an_epoch']:.3f}" for step in steps) + " |\n"
    yield "| speed-up over naive | " + " | ".join(f"{step['speed_up']:.2f}" for step in steps) + " |\n"
    yield "| test accuracy | " + " | ".join(f"{100 * step['accuracy']:.2f} %" for step in steps) + " |\n"
    for kind in kinds:
        yield f"| {kind} | " + " | ".join(f"{step['operations'][kind]:.5f}" if kind in step["operations"] else "–" for step in steps) + " |\n"
    for step in report["ladder"]:
        if "reason" in step:
            yield f"\nLeft out: {step['rung']}, since {step['reason']}.\n"


def step_operations(report):
    every, device = report["operations_seconds"], report["device"]
    epochs = sorted(epoch["images_per_second"] for epoch in report["epochs"])
    options = report["options"]
    knows_launches = "launch_seconds" in device  # reports of before have floors of bytes alone
    step = f", a step in {report['step_seconds'] * 1e3:.3f} ms" if "step_seconds" in report else ""
    whole = f"Whole steps make {epochs[len(epochs) // 2]:.0f} images a second, data and all{step}. "
    by = (f"the floor is the largest of its launches at {significant(device['launch_seconds'] * 1e6)} µs, its bytes at {device['peak_gbps']:.0f} GB/s and, where multiply-adds do it, its arithmetic at "
          f"{significant(device['peak_tflops'])} TFLOP/s" if knows_launches else f"floors by its bytes at {device['peak_gbps']:.0f} GB/s")
    floors = (f"floors {report['floor_seconds'] * 1e3:.3f} ms; by launches alone {report['floors']['launches'] * 1e3:.3f} ms, by bytes {report['floors']['bytes'] * 1e3:.3f} ms, by arithmetic "
              f"{report['floors']['arithmetic'] * 1e3:.3f} ms" if knows_launches else f"floors {report['floor_seconds'] * 1e3:.3f} ms")
    yield (f"## A step's operations on {device_of(report)}: `{report['model']}`, {options['batch']} images, {options['precision']}\n\n{heading(report)}{whole}`--operations`: each operation timed by itself, again and "
           f"again, its arrays in caches where they fit; {by}. All of them {every * 1e3:.3f} ms, {report['launches']} launches; {floors}.\n\n"
           f"| operation | problem | µs | share | floor, µs |{' by |' if knows_launches else ''} TFLOP/s | GB/s | launches | solver |\n{'| --- ' * (10 if knows_launches else 9)}|\n")
    for step in report["steps"]:
        by = f" {step['floor_by']} |" if knows_launches else ""
        yield (f"| {step['what']} | `{step['problem']}` | {step['seconds'] * 1e6:.1f} | {100 * step['seconds'] / every:.1f} % | {step['floor_seconds'] * 1e6:.1f} |{by} "
               f"{significant(step['operations'] / step['seconds'] / 1e12)} | {step['bytes'] / step['seconds'] / 1e9:.0f} | {step['launches']} | `{step['solver']}` |\n")


MAKERS = {"omniconv-training-devices/1": on_devices, "omniconv-predict-peers/1": predicting, "omniconv-train/1": trained, "omniconv-training-peers/1": training, "omniconv-accuracies/1": accuracies, "omniconv-compare/1": compared, "omniconv-compare-conv2d/1": compared_layers, "omniconv-compare-gemm/1": compared_products,
          "omniconv-bench/1": benched, "omniconv-files/1": files, "omniconv-huge/1": huge,
          "omniconv-peers/1": peers, "omniconv-end-to-end/1": end_to_end, "omniconv-huge-gpu/1": huge_gpu, "omniconv-gpu-check/1": gpu_check, "omniconv-random/1": random_problems,
          "omniconv-before-after/1": before_after, "omniconv-convolutions/1": layers, "omniconv-errors/1": errors}


def table(report):
    return "".join(MAKERS[report["schema"]](report))
