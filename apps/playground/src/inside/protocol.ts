import type { TaskName } from "../train/config.js";
import type { SetupId } from "../train/setups.js";
import type { Tier } from "./page-state.js";
import type { StageId } from "./stages.js";
import type { StepView } from "./step-view.js";

/** A step at a stage of the planner. */
export interface StepKey {
  readonly task: TaskName;
  readonly setup: SetupId;
  readonly stage: StageId;
}

/** One program of such a step. */
export interface ProgramKey extends StepKey {
  readonly launch: number;
  readonly tier: Tier;
}

/** What the page asks the worker for. */
export type InsideQuestion =
  | { readonly type: "step"; readonly key: StepKey }
  | { readonly type: "program"; readonly key: ProgramKey };

/** What a stage costs. */
export interface StageCosts {
  readonly id: StageId;
  readonly launches: number;
  readonly casts: number;
  readonly bytes: number;
  /** Whether its pass has changed anything. */
  readonly isEffective: boolean;
}

/** A launch as it was recorded. */
export interface RecordedView {
  readonly title: string;
  /** Its position, then those of the launches that may do its work where it is folded away: its readers, and theirs. */
  readonly heirs: readonly number[];
}

/** A program in WGSL. */
export interface ProgramView {
  readonly code: string;
  readonly workgroups: readonly number[];
  /** Floating-point operations, where the launch's time is spent on them. */
  readonly operations?: number;
}

/** What the worker answers. */
export type InsideAnswer =
  | {
      readonly type: "step";
      readonly key: StepKey;
      readonly stages: readonly StageCosts[];
      readonly step: StepView;
      /** The launches of the recording, by position. */
      readonly recorded: readonly RecordedView[];
    }
  | { readonly type: "program"; readonly key: ProgramKey; readonly program: ProgramView }
  | { readonly type: "failed"; readonly message: string };
