import type { CompileProgress } from "@halfstep/device";
import { SingleBar } from "cli-progress";
import { formatDuration, formatNumber, formatScale } from "./quantities.js";
import { TrainingClock } from "./training-clock.js";

/** The progress of training. */
export interface TrainingProgress {
  /** Counts from 1. */
  readonly epoch: number;
  readonly epochs: number;
  /** Steps done, over all epochs. */
  readonly step: number;
  readonly steps: number;
  /** Mean training loss, once it is known. */
  readonly loss?: number | undefined;
  readonly samplesPerSecond: number;
  readonly scale: number;
  readonly skipped: number;
}

/** The stream for progress: `process.stderr`, or any object with a `write`. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** Options of showing progress. */
export interface ProgressOptions {
  /** Seconds between plain lines where the stream is not a terminal. Default 5. */
  readonly interval?: number;
  /** Milliseconds since some start. Default `performance.now`. */
  readonly now?: () => number;
}

/** Live progress of one training run. */
export interface Progress {
  /** Seconds so far, without the time in which programs were compiled. */
  readonly seconds: number;
  /** Shows how many programs are compiled that a step waits for. */
  compiling(progress: CompileProgress): void;
  update(progress: TrainingProgress): void;
  /** A line that stays, such as "step 812 skipped, scale 65536 → 32768". */
  note(line: string): void;
  /** Shows the last state and ends the line. */
  stop(): void;
}

/**
 * A bar on a terminal; elsewhere a plain line at the first step, then one every few seconds, then the last step. Where programs are
 * compiled for a second or longer, lines say how many are done.
 */
export const trainingProgress = (
  label: string,
  stream: ProgressStream,
  { interval = 5, now = () => performance.now() }: ProgressOptions = {},
): Progress => {
  const clock = new TrainingClock(now);
  let first: number | undefined;
  const describe = (progress: TrainingProgress): string => {
    // An earlier process has done the steps before a resumed run.
    first ??= progress.step;
    return describeProgress(progress, clock.seconds, Math.max(0, first - 1));
  };
  const shown = stream.isTTY
    ? barProgress(label, stream as NodeJS.WriteStream, describe)
    : plainProgress(label, stream, describe, { interval, now });
  return {
    ...shown,
    get seconds() {
      return clock.seconds;
    },
    compiling(progress) {
      const seconds = clock.compiling(progress);
      shown.compiling(progress, seconds);
    },
  };
};

/** The progress of compiling, in one line. */
const describeCompiling = ({ compiled, total }: CompileProgress): string =>
  `compiling ${compiled} of ${total} programs`;

/**
 * Epoch, loss, speed, loss scale, skipped steps and time left, in one line.
 * @param seconds since step `before`, which an earlier process may have completed
 */
export const describeProgress = (
  progress: TrainingProgress,
  seconds: number,
  before: number = 0,
): string => {
  const { epoch, epochs, step, steps, loss, samplesPerSecond, scale, skipped } = progress;
  return [
    `epoch ${epoch}/${epochs}`,
    `step ${step}/${steps}`,
    `loss ${loss === undefined ? "–" : loss.toFixed(4)}`,
    `${formatNumber(samplesPerSecond)} samples/s`,
    ...(scale === 1 && skipped === 0 ? [] : [`scale ${formatScale(scale)}`, `skipped ${skipped}`]),
    step < steps
      ? `${step <= before ? "–" : formatDuration((seconds / (step - before)) * (steps - step))} left`
      : formatDuration(seconds),
  ].join(" · ");
};

type Describe = (progress: TrainingProgress) => string;

/** What shows progress. */
interface Shown extends Omit<Progress, "seconds" | "compiling"> {
  /** @param seconds since compiling began */
  compiling(progress: CompileProgress, seconds: number): void;
}

const barProgress = (label: string, stream: NodeJS.WriteStream, describe: Describe): Shown => {
  let running = false;
  const bar = new SingleBar({
    stream,
    format: `${label} {bar} {text}`,
    barsize: 20,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    hideCursor: false,
    gracefulExit: false,
    forceRedraw: true,
    fps: 8,
  });
  const show = (done: number, total: number, text: string): void => {
    if (running) {
      bar.setTotal(total);
      bar.update(done, { text });
    } else bar.start(total, done, { text });
    running = true;
  };
  return {
    compiling(progress) {
      show(progress.compiled, progress.total, describeCompiling(progress));
    },
    update(progress) {
      show(progress.step, progress.steps, describe(progress));
    },
    note(line) {
      // The bar is on the current line: the note replaces it, and the next redraw shows the bar below.
      stream.write(running ? `\r\u001b[K${line}\n` : `${line}\n`);
    },
    stop() {
      if (running) bar.stop();
      running = false;
    },
  };
};

const plainProgress = (
  label: string,
  stream: ProgressStream,
  describe: Describe,
  { interval, now }: Required<ProgressOptions>,
): Shown => {
  let shown: TrainingProgress | undefined;
  let shownAt = Number.NEGATIVE_INFINITY;
  let compilingShownAt = Number.NEGATIVE_INFINITY;
  let latest: TrainingProgress | undefined;
  const show = (progress: TrainingProgress): void => {
    stream.write(`${label} · ${describe(progress)}\n`);
    shown = progress;
    shownAt = now();
  };
  return {
    compiling(progress, seconds) {
      if (seconds < 1 || now() - compilingShownAt < interval * 1000) return;
      stream.write(`${label} · ${describeCompiling(progress)}\n`);
      compilingShownAt = now();
    },
    update(progress) {
      latest = progress;
      if (now() - shownAt >= interval * 1000 || progress.step === progress.steps) show(progress);
    },
    note(line) {
      stream.write(`${line}\n`);
    },
    stop() {
      if (latest !== undefined && latest !== shown) show(latest);
    },
  };
};
