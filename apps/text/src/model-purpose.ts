import { DataError } from "@halfstep/data";
import { folds } from "./examples.js";
import { type MailPart, mailParts } from "./mails.js";
import { type Corpus, corpora, type TaskName, taskNames } from "./tasks.js";

/** The purpose of a model. */
export interface ModelPurpose {
  readonly task: TaskName;
  /** Names of classes, or tags. */
  readonly labels: readonly string[];
  /** Tokens of a text. */
  readonly maxLength: number;
  readonly bag: boolean;
  readonly crf: boolean;
  readonly mailPart: MailPart;
  readonly words: number;
  readonly corpus: Corpus;
  readonly fold: number;
}

type Check = (value: unknown) => boolean;

const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 1;
const isBoolean: Check = (value) => typeof value === "boolean";
const oneOf =
  (names: readonly unknown[]): Check =>
  (value) =>
    names.includes(value);

const checks: Readonly<Record<keyof ModelPurpose, Check>> = {
  task: oneOf(taskNames),
  labels: (value) => Array.isArray(value) && value.every((label) => typeof label === "string"),
  maxLength: isCount,
  bag: isBoolean,
  crf: isBoolean,
  mailPart: oneOf(mailParts),
  words: isCount,
  corpus: oneOf(corpora),
  fold: oneOf([...Array(folds).keys()]),
};

/**
 * The purpose in a `config.json` of this program; undefined for other models.
 * @throws DataError where a field is invalid
 */
export function purposeOf(config: unknown, source: string): ModelPurpose | undefined {
  const { halfstep, max_position_embeddings } = config as Readonly<Record<string, unknown>>;
  if (halfstep === undefined) return undefined;
  const purpose = (halfstep ?? {}) as Readonly<Record<string, unknown>>;
  const wrong = Object.entries(checks).find(([name, isValid]) => !isValid(purpose[name]));
  if (wrong)
    throw new DataError(source, `has no usable ${wrong[0]} in halfstep: restore it, or train anew`);
  if (purpose.task !== "mlm" && (purpose.labels as readonly string[]).length < 2)
    throw new DataError(source, "has fewer than two labels in halfstep: restore it, or train anew");
  if (Number(purpose.maxLength) > Number(max_position_embeddings))
    throw new DataError(source, `has a maxLength beyond its max_position_embeddings`);
  return purpose as unknown as ModelPurpose;
}
