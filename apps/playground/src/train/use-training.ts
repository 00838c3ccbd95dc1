import type { RefObject } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { workerErrorText } from "../site/worker-error.js";
import type { TrainConfig } from "./config.js";
import type { LaneStatistics, StepPoint } from "./lane.js";
import type { Colour, FromWorker, LaneProgress, SurfaceColours, ToWorker } from "./protocol.js";
import type { SetupId } from "./setups.js";

/** What the page knows of a lane. */
export interface LaneState {
  readonly points: readonly StepPoint[];
  readonly statistics?: LaneStatistics;
  readonly accuracy?: number;
  /** What a GPT has written, the newest at the end. */
  readonly text: string;
  /** Of the weights, when training rested last. */
  readonly hash?: string;
  readonly origin?: string;
  readonly failure?: string;
}

/** What the page knows of training. */
export interface Training {
  readonly device?: Extract<FromWorker, { type: "device" }>;
  /** Present while programs are compiled. */
  readonly compiling?: Extract<FromWorker, { type: "compiling" }>;
  /** Present after training was interrupted: at which step, and from which it went on as soon as it does. */
  readonly interruption?: { readonly lostAt?: number; readonly resumedAt?: number };
  readonly lanes: ReadonlyMap<SetupId, LaneState>;
  readonly isPlaying: boolean;
  /** Probabilities of the classes of a drawn digit, by lane. */
  readonly probabilities: readonly Float32Array[];
  readonly failure?: string;
}

const newLane: LaneState = { points: [], text: "" };

/** Most characters that are kept of what a GPT writes. */
const mostText = 700;

const begun: Training = { lanes: new Map(), isPlaying: false, probabilities: [] };

/** The state after a message of the worker. */
export function afterMessage(training: Training, message: FromWorker): Training {
  switch (message.type) {
    case "device":
      return { ...training, device: message };
    case "compiling": {
      const { compiling: _, ...rest } = training;
      return message.compiled < message.total ? { ...rest, compiling: message } : rest;
    }
    case "lost":
      return { ...training, interruption: { lostAt: message.step } };
    case "resumed":
      return {
        ...training,
        interruption: { ...training.interruption, resumedAt: message.step },
        lanes: new Map(
          message.lanes.map((progress) => [
            progress.id,
            afterProgress(
              { ...newLane, text: training.lanes.get(progress.id)?.text ?? "" },
              progress,
            ),
          ]),
        ),
      };
    case "progress": {
      const lanes = new Map(training.lanes);
      for (const progress of message.lanes) {
        lanes.set(progress.id, afterProgress(lanes.get(progress.id) ?? newLane, progress));
      }
      const { compiling: _, ...rest } = training;
      return { ...rest, lanes, isPlaying: training.isPlaying && message.isPlaying };
    }
    case "classified":
      return { ...training, probabilities: message.probabilities };
    case "failed":
      return { ...training, isPlaying: false, failure: message.message };
    case "saved":
      return training;
  }
}

function afterProgress(
  { hash: _, ...lane }: LaneState,
  { id, points, text, ...news }: LaneProgress,
): LaneState {
  return {
    ...lane,
    ...news,
    points: points.length === 0 ? lane.points : [...lane.points, ...points],
    text: text === undefined ? lane.text : (lane.text + text).slice(-mostText),
  };
}

/** Training in a worker, as a state and the ways to change it. */
export interface TrainingControls {
  readonly training: Training;
  readonly play: () => void;
  readonly pause: () => void;
  readonly step: () => void;
  readonly reset: () => void;
  readonly classify: (pixels: Float32Array) => void;
  readonly save: (setup: SetupId) => void;
  /** Counts runs: canvases of one run cannot be used by another. */
  readonly run: number;
  /** Holds the canvases of the run. */
  readonly stage: RefObject<HTMLElement | null>;
}

/** Trains a configuration. A change of it begins a new run. */
export function useTraining(config: TrainConfig): TrainingControls {
  const worker = useRef<Worker | undefined>(undefined);
  const stage = useRef<HTMLElement>(null);
  const [training, setTraining] = useState(begun);
  const [run, setRun] = useState(0);
  const key = JSON.stringify(config);

  useEffect(() => {
    const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    started.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
      if (data.type === "saved") offerFile(data.name, new Blob([data.bytes]));
      setTraining((old) => afterMessage(old, data));
    });
    started.addEventListener("error", (event) => {
      const message = workerErrorText(event);
      setTraining((old) => afterMessage(old, { type: "failed", message }));
    });
    worker.current = started;
    return () => started.terminate();
  }, [config.compute]);

  const send = useCallback((message: ToWorker, transfer: Transferable[] = []): void => {
    worker.current?.postMessage(message, transfer);
  }, []);

  // A new configuration gets new canvases first, and is started when they are there.
  useEffect(() => setRun((old) => old + 1), [key]);
  useEffect(() => {
    if (run === 0) return;
    const canvases = [...(stage.current?.querySelectorAll("canvas.surface") ?? [])].map((canvas) =>
      (canvas as HTMLCanvasElement).transferControlToOffscreen(),
    );
    setTraining(({ device }) => ({ ...begun, ...(device && { device }) }));
    const base = document.baseURI;
    // The first run of a page may have been begun before the page was loaded again.
    const resumes = run === 1;
    send({ type: "start", config, base, canvases, colours: surfaceColours(), resumes }, canvases);
  }, [run]);

  return {
    training,
    play: () => {
      setTraining((old) => ({ ...old, isPlaying: true }));
      send({ type: "play" });
    },
    pause: () => {
      setTraining((old) => ({ ...old, isPlaying: false }));
      send({ type: "pause" });
    },
    step: () => send({ type: "step" }),
    reset: () => setRun((old) => old + 1),
    classify: (pixels) => send({ type: "classify", pixels }),
    save: (setup) => send({ type: "save", setup }),
    run,
    stage,
  };
}

/** Lets the visitor save a file that the page made. */
export function offerFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The colours of the page's style, for a canvas. */
function surfaceColours(): SurfaceColours {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): Colour => {
    const hex = style.getPropertyValue(name).trim();
    const part = (at: number): number => Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return [part(1), part(3), part(5)];
  };
  return { first: colour("--range-soft"), second: colour("--precision-soft") };
}
