import { DataError } from "@halfstep/data";

/** Names of classes by column: the place of a name is the number that the file has. */
export type ClassNames = ReadonlyMap<string, readonly string[]>;

interface Entry {
  readonly key: string;
  readonly value?: string | undefined;
}

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The names of classes that the library `datasets` of Hugging Face writes into a Parquet file: features of the type `ClassLabel`, and lists of
 * them. Files of others have none.
 * @throws DataError for a description that is none
 */
export function classNamesIn(path: string, metadata: readonly Entry[] = []): ClassNames {
  const text = metadata.find(({ key }) => key === "huggingface")?.value;
  const names = new Map<string, readonly string[]>();
  if (text === undefined) return names;
  let features: unknown;
  try {
    features = JSON.parse(text)?.info?.features;
  } catch {
    throw new DataError(path, 'has a description "huggingface" that is no JSON: download it again');
  }
  if (!isObject(features)) return names;
  for (const [column, feature] of Object.entries(features)) {
    const label = labelOf(feature);
    if (!label) continue;
    const { names: given } = label;
    if (!Array.isArray(given) || !given.every((name) => typeof name === "string"))
      throw new DataError(
        path,
        `describes ${JSON.stringify(column)} as classes without a list of their names: download it again`,
      );
    names.set(column, given);
  }
  return names;
}

/** The feature of classes that a feature is, or is a list of: `Sequence` in older versions, `List` in later ones. */
function labelOf(feature: unknown): Json | undefined {
  const inner = isObject(feature) && isObject(feature.feature) ? feature.feature : feature;
  return isObject(inner) && inner._type === "ClassLabel" ? inner : undefined;
}

/**
 * A number of a class, or a list of such, as names.
 * @throws DataError for a number without a name, with the remedy
 */
export function withNames(
  value: unknown,
  names: readonly string[],
  at: { readonly name: string; readonly place: string },
): unknown {
  if (Array.isArray(value)) return value.map((each) => withNames(each, names, at));
  if (typeof value !== "number" && typeof value !== "bigint") return value;
  const found = names[Number(value)];
  if (found !== undefined) return found;
  const remedy =
    Number(value) === -1
      ? "-1 stands for labels that are not published: take another file of the data set"
      : "download it again";
  throw new DataError(
    at.name,
    `${at.place} has the class ${value}, and ${names.length} have names: ${remedy}`,
  );
}
