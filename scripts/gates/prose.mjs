import { toString as textOf } from "nlcst-to-string";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRetext from "remark-retext";
import retextEnglish from "retext-english";
import retextRepeatedWords from "retext-repeated-words";
import { unified } from "unified";
import { SKIP, visit } from "unist-util-visit";
import { VFile } from "vfile";

/** Words that a sentence has at most. */
export const longest = 40;

/** Pronouns for people. A sentence about a program names the program instead. */
const riddles = /^([Ww]ho|[Ww]hom|Whose|[Ww]hoever|[Nn]obody|[Ss]omebody|[Aa]nybody)$/;

/** Words for people, which such a pronoun may follow. */
const people =
  /\b(people|person|persons|users?|readers?|authors?|engineers?|developers?|newcomers?|someone|anyone|everyone|those|researchers?|maintainers?|contributors?|callers?|you|speakers?|writers?|clients?|learners?|team)$/i;

/** Removes code, tables and HTML, which are not prose. */
const withoutCode = () => (tree) => {
  visit(tree, (node, index, parent) => {
    if (node.type === "code" || node.type === "table" || node.type === "html") {
      parent.children.splice(index, 1);
      return [SKIP, index];
    }
    return undefined;
  });
};

const processor = unified()
  .use(remarkParse)
  .use(remarkGfm)
  .use(withoutCode)
  .use(remarkRetext, unified().use(retextEnglish).use(retextRepeatedWords).use(plainWords));

/** Checks the length of sentences, and pronouns for people. */
function plainWords() {
  return (tree, file) => {
    const sentences = [];
    visit(tree, "SentenceNode", (sentence) => {
      const words = sentence.children.filter(({ type }) => type === "WordNode");
      if (words.length === 0) return;
      sentences.push(words.length);
      if (words.length > longest)
        file.message(`a sentence of ${words.length} words: at most ${longest}`, sentence);
      for (const [i, word] of words.entries()) {
        if (!riddles.test(textOf(word))) continue;
        const before = words.slice(Math.max(0, i - 3), i).map((each) => textOf(each));
        if (!before.some((each) => people.test(each)))
          file.message(`"${textOf(word)}": name the kernel, the pass or the function`, word);
      }
    });
    file.data.sentences = sentences;
  };
}

/** The findings in the prose of a Markdown text, by line, and the number of words of each sentence. */
export async function proseOf(text) {
  const file = new VFile(text);
  await processor.run(processor.parse(file), file);
  const findings = file.messages.map(({ reason, line }) => ({ reason, line: line ?? 1 }));
  return { findings, sentences: file.data.sentences ?? [] };
}
