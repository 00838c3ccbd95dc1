import { closeSync, openSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { storing } from "../errors.js";
import { makeDirectory } from "../files/make-directory.js";
import { requireKinds } from "../option-kinds.js";
import { type MetricsSink, recording } from "../trackers/metrics-sink.js";
import { type Scalars, scalarsOf } from "../trackers/scalars.js";
import { type Event, eventRecord } from "./event.js";

/** A hook that writes an event file, with a method to write further numbers. */
export interface TensorBoardLog extends MetricsSink {
  /** The path of the file. */
  readonly path: string;
  /**
   * Writes a number under a name such as "train/gradient norm".
   * @throws StorageError; Error after `close`
   */
  scalar(tag: string, value: number, step: number): void;
  close(): void;
}

/** Options of writing for TensorBoard. */
export interface TensorBoardOptions {
  /** Seconds since 1970. Default: the clock of the system. */
  readonly now?: () => number;
}

/**
 * A hook that writes loss, learning rate and loss scale of every step (`train/…`) and the values of every evaluation
 * (`evaluation/…`) into an event file of TensorBoard. The folder is that of one run: TensorBoard compares the folders below
 * the one that it is given. A resumed run begins another file, which tells TensorBoard to discard later entries than the
 * checkpoint.
 *
 * @throws StorageError
 * @example
 * const tensorBoard = tensorBoardLog("runs/digits/tensorboard/float16");
 * await train({ …, hooks: { tensorBoard } }).finally(tensorBoard.close);
 * // tensorboard --logdir runs/digits/tensorboard
 */
export function tensorBoardLog(
  directory: string,
  options: TensorBoardOptions = {},
): TensorBoardLog {
  requireKinds("tensorBoardLog()", options, { now: "function" });
  const { now = () => Date.now() / 1000 } = options;
  storing(directory, () => makeDirectory(directory));
  const began = now();
  const path = join(directory, fileName(began));
  let file: number | undefined = storing(path, () => openSync(path, "wx"));
  let last = 0;

  const write = (event: Omit<Event, "wallTime">): void => {
    if (file === undefined) throw new Error(`${path} is closed: write to it before close()`);
    const record = eventRecord({ wallTime: now(), ...event });
    for (let at = 0; at < record.length; )
      at += storing(path, () => writeSync(file as number, record, at));
  };
  const writeScalars = (values: Scalars, step: number): void => {
    const scalars = Object.entries(values).map(([tag, value]) => ({ tag, value }));
    if (scalars.length > 0) write({ step, scalars });
    last = Math.max(last, step);
  };
  write({ fileVersion: "brain.Event:2" });
  return {
    path,
    scalar: (tag, value, step) => write({ step, scalars: [{ tag, value }] }),
    ...recording((line) => writeScalars(scalarsOf(line), line.step)),
    stateDict: () => ({ step: last }),
    loadStateDict({ step }: { readonly step: number }) {
      if (!Number.isSafeInteger(step) || step < 0)
        throw new TypeError("the state of a TensorBoard log needs the step that it had come to");
      last = step;
      write({ step: step + 1, isRestart: true });
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

let files = 0;

/** A name in the form of TensorFlow; the number distinguishes logs of the same second and process. */
const fileName = (seconds: number): string =>
  `events.out.tfevents.${String(Math.floor(seconds)).padStart(10, "0")}.${hostname()}.${process.pid}.${files++}`;
