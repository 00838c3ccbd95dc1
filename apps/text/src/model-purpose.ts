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
  /** Whether a text may have any number of the labels. Default false. */
  readonly multiLabel?: boolean | undefined;
  /** Whether texts are pairs. Default false. */
  readonly pairs?: boolean | undefined;
  /** Whether a sentence is tagged with those around it in sight. Default false. */
  readonly documentContext?: boolean | undefined;
  /** Whether it was trained on data of one's own. Default false. */
  readonly ownData?: boolean | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** Tasks by the classes of transformers that are for them. */
const tasksOfArchitectures: Readonly<Record<string, TaskName>> = {
  BertForSequenceClassification: "sentences",
  BertForTokenClassification: "tags",
  BertForMaskedLM: "mlm",
};

/** Tokens of a text that a model from elsewhere sees, at most. */
const longestText = 512;

function foreignPurpose(config: Fields): ModelPurpose | undefined {
  const { architectures, id2label, problem_type: problem, max_position_embeddings: most } = config;
  const [architecture] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
  const task = Object.hasOwn(tasksOfArchitectures, String(architecture))
    ? tasksOfArchitectures[String(architecture)]
    : undefined;
  const labels = task === "mlm" ? [] : labelsIn(id2label);
  const multiLabel = problem === "multi_label_classification";
  const isClassifier =
    (problem ?? "single_label_classification") === "single_label_classification" ||
    (multiLabel && task === "sentences");
  if (task === undefined || labels === undefined || !isClassifier) return undefined;
  return {
    ...{ task, labels, maxLength: Math.min(longestText, Number(most) || longestText) },
    ...{ bag: false, crf: false, mailPart: "body", words: 60, corpus: "brown", fold: 0 },
    // A text with a tab is a pair, for models of pairs do not say that they are.
    ...{ multiLabel, pairs: task === "sentences" },
  };
}

/** The names of labels by their numbers; undefined where they are no list of two or more. */
function labelsIn(id2label: unknown): readonly string[] | undefined {
  // Those of transformers where a file has none.
  const names = Object.entries((id2label ?? { 0: "LABEL_0", 1: "LABEL_1" }) as Fields);
  const labels = new Array<string | undefined>(names.length);
  for (const [id, label] of names)
    if (/^\d{1,6}$/.test(id) && Number(id) < names.length && typeof label === "string")
      labels[Number(id)] = label;
  const isWhole = labels.length >= 2 && !labels.includes(undefined);
  return isWhole && new Set(labels).size === labels.length ? (labels as string[]) : undefined;
}

type Check = (value: unknown) => boolean;

const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 1;
/** Tokens of a text: `[CLS]`, `[SEP]` and one between them are the least. */
const isLength: Check = (value) => isCount(value) && Number(value) >= 3;
const isBoolean: Check = (value) => typeof value === "boolean";
const oneOf =
  (names: readonly unknown[]): Check =>
  (value) =>
    names.includes(value);

const optionalBoolean: Check = (value) => value === undefined || isBoolean(value);

const checks: Readonly<Record<keyof ModelPurpose, Check>> = {
  task: oneOf(taskNames),
  labels: (value) => Array.isArray(value) && value.every((label) => typeof label === "string"),
  maxLength: isLength,
  bag: isBoolean,
  crf: isBoolean,
  mailPart: oneOf(mailParts),
  words: isCount,
  corpus: oneOf(corpora),
  fold: oneOf([...Array(folds).keys()]),
  multiLabel: optionalBoolean,
  pairs: optionalBoolean,
  documentContext: optionalBoolean,
  ownData: optionalBoolean,
};

/**
 * The purpose in a `config.json` of this program, or that of a model of transformers by its `architectures` and `id2label`. Undefined for
 * models without a head that has a task here.
 * @throws DataError where a field is invalid
 */
export function purposeOf(config: unknown, source: string): ModelPurpose | undefined {
  const { halfstep, max_position_embeddings } = config as Readonly<Record<string, unknown>>;
  if (halfstep === undefined) return foreignPurpose(config as Fields);
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
