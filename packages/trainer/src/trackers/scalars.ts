import { isEvaluation, type MetricsLine, type RunSummary } from "../summary.js";

/** Numbers by name, such as "train/loss". */
export type Scalars = Readonly<Record<string, number>>;

/** The numbers of a step or an evaluation. */
export function scalarsOf(line: MetricsLine): Scalars {
  if (isEvaluation(line)) return named("evaluation", line.values);
  const { loss, lr, scale, epoch } = line;
  return named("train", { loss, lr, "loss scale": scale, epoch });
}

/** The numbers of the test after training. */
export const testScalars = ({ test }: RunSummary): Scalars => named("test", test);

/** Those that are finite: JSON has no others. */
export const finite = (scalars: Scalars): Scalars =>
  Object.fromEntries(Object.entries(scalars).filter(([, value]) => Number.isFinite(value)));

const named = (prefix: string, values: Readonly<Record<string, number | null>>): Scalars =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      typeof value === "number" ? [[`${prefix}/${name}`, value]] : [],
    ),
  );
