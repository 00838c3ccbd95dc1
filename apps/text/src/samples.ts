import type { Sample } from "@halfstep/trainer/report";
import type { GivenText } from "./examples.js";
import { type PredictOptions, predict, wordsIn } from "./predict.js";
import type { TaskData } from "./tasks.js";

/** Test examples in the report, and in the terminal. */
const count = 8;

/** A test example as a text, with the correct answer. */
interface Asked {
  readonly text: string;
  readonly label: string;
}

/** Test examples with the predictions of a trained model. */
export async function samplesOf(
  options: PredictOptions,
  data: TaskData,
): Promise<readonly Sample[]> {
  const asked = askedOf(data).slice(0, count);
  const said = await predict(
    options,
    asked.map(({ text }) => text),
  );
  return asked.map(({ text, label }, i) => ({
    text,
    label,
    prediction: said[i]?.labels.join(" ") ?? "",
  }));
}

/** Lines for the terminal: the correct answer, the prediction where it differs, and the text. */
export const describeSamples = (samples: readonly Sample[]): readonly string[] =>
  samples.map(({ text = "", label, prediction }) => {
    const named = (answer: string | undefined): string => answer || "(no label)";
    const said = label === prediction ? named(label) : `${named(label)}, not ${named(prediction)}`;
    return `  ${cut(text)} → ${cut(said)}`;
  });

/** A text, or a pair with a tab between its parts, as `predict` takes them. */
const lineOf = ({ text, pair }: GivenText): string => {
  const [first, second] = [text, pair].map((part) => part?.replace(/\s+/g, " "));
  return second === undefined ? text : `${first}\t${second}`;
};

function askedOf({ kind, labels, splits }: TaskData): readonly Asked[] {
  const nameOf = (label: number): string => labels[label] as string;
  if (kind === "classes")
    return splits.test.map(({ label, ...text }) => ({ text: lineOf(text), label: nameOf(label) }));
  if (kind === "labels")
    return splits.test.map(({ labels: given, ...text }) => ({
      text: lineOf(text),
      label: given
        .toSorted((a, b) => a - b)
        .map(nameOf)
        .join(" "),
    }));
  if (kind === "tags")
    return (
      splits.test
        .map(({ words, tags }) => ({ words, text: words.join(" "), tags }))
        // Free text is divided into words by rules, which differ from those of some corpora.
        .filter(({ words, text }) => wordsIn(text).join("\n") === words.join("\n"))
        .slice(0, count)
        .map(({ text, tags }) => ({ text, label: tags.map(nameOf).join(" ") }))
    );
  return splits.test.slice(0, count).map((text) => {
    const words = text.split(/\s+/).filter((word) => word !== "");
    const place = Math.floor(words.length / 2);
    const hidden = words.map((word, i) => (i === place ? "[MASK]" : word)).join(" ");
    return { text: hidden, label: (words[place] ?? "").toLowerCase() };
  });
}

const longest = 60;

const cut = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
};
