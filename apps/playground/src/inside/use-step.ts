import { useEffect, useRef, useState } from "preact/hooks";
import { workerErrorText } from "../site/worker-error.js";
import type { InsideState } from "./page-state.js";
import type { InsideAnswer, InsideQuestion, ProgramKey, ProgramView, StepKey } from "./protocol.js";

type StepShown = Extract<InsideAnswer, { type: "step" }>;

/** What the page knows of the step that its address names. */
export interface Inside {
  /** That of an older address until the worker has planned the new one. */
  readonly shown?: StepShown;
  /** The open launch in the shown step; −1 for none. */
  readonly selected: number;
  /** Its program; absent until the worker has written it. */
  readonly program?: ProgramView;
  readonly failure?: string;
}

interface Answers {
  readonly step?: StepShown;
  readonly program?: Extract<InsideAnswer, { type: "program" }>;
  readonly failure?: string;
}

/** Asks a worker for the step of an address, and for the program of its open launch. */
export function useStep({ task, setup, stage, at, tier }: InsideState): Inside {
  const worker = useRef<Worker | undefined>(undefined);
  const [{ step, program, failure }, setAnswers] = useState<Answers>({});
  useEffect(() => {
    const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    started.addEventListener("message", ({ data }: MessageEvent<InsideAnswer>) => {
      setAnswers((old) =>
        data.type === "failed" ? { ...old, failure: data.message } : { ...old, [data.type]: data },
      );
    });
    started.addEventListener("error", (event) => {
      setAnswers((old) => ({ ...old, failure: workerErrorText(event) }));
    });
    worker.current = started;
    return () => started.terminate();
  }, []);
  const ask = (question: InsideQuestion): void => worker.current?.postMessage(question);

  const key: StepKey = { task, setup, stage };
  useEffect(() => ask({ type: "step", key }), [task, setup, stage]);

  const selected = step ? placeOf(step, at) : -1;
  const isCurrent = step !== undefined && textOf(step.key) === textOf(key);
  const wanted =
    isCurrent && selected >= 0 ? ({ ...key, launch: selected, tier } as const) : undefined;
  useEffect(() => {
    if (wanted) ask({ type: "program", key: wanted });
  }, [wanted && textOf(wanted)]);
  const isWritten = program && wanted && textOf(program.key) === textOf(wanted);

  return {
    selected,
    ...(step && { shown: step }),
    ...(isWritten && { program: program.program }),
    ...(failure !== undefined && { failure }),
  };
}

/** The launch that does what one of the recording did; −1 where nothing does. */
const placeOf = ({ step, recorded }: StepShown, at: number): number => {
  const heir = recorded[at]?.heirs.find((position) =>
    step.launches.some((launch) => launch.recorded.includes(position)),
  );
  return heir === undefined
    ? -1
    : step.launches.findIndex((launch) => launch.recorded.includes(heir));
};

/** Equal for questions with equal answers. */
const textOf = (key: StepKey | ProgramKey): string =>
  [key.task, key.setup, key.stage, ...("launch" in key ? [key.launch, key.tier] : [])].join(" ");
