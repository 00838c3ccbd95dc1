import type { TensorExam } from "./examine.js";

/** A file for the worker. */
export interface FileToExamine {
  /** Undefined for the example. */
  readonly file: File | undefined;
}

/** What the worker found. */
export type Finding =
  | { readonly type: "opened"; readonly name: string; readonly count: number }
  | { readonly type: "tensors"; readonly exams: readonly TensorExam[] }
  | { readonly type: "done" }
  | { readonly type: "failed"; readonly message: string };
