import ts from "typescript";

/** Tags of docstrings whose text is code or a reference, up to the next tag. */
const codeTags = /^@(example|see|link|type|typeParam|template)\b/;

/**
 * The comments of a source file as Markdown, each with the line where it begins. Lines of one `//` comment belong together. Tags lose
 * their names, and examples their code.
 */
export function commentsOf(path, source) {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, false);
  const ranges = new Map();
  const visit = (node) => {
    for (const range of ts.getLeadingCommentRanges(source, node.pos) ?? [])
      ranges.set(range.pos, range);
    for (const range of ts.getTrailingCommentRanges(source, node.end) ?? [])
      ranges.set(range.pos, range);
    for (const child of node.getChildren(file)) visit(child);
  };
  visit(file);
  const comments = [];
  for (const { pos, end, kind } of [...ranges.values()].sort((a, b) => a.pos - b.pos)) {
    const { line } = file.getLineAndCharacterOfPosition(pos);
    const text = source.slice(pos, end);
    const isAlone = /(^|\n)[ \t]*$/.test(source.slice(0, pos));
    const last = comments.at(-1);
    if (kind === ts.SyntaxKind.MultiLineCommentTrivia) {
      comments.push({ line, end: line, text: blockText(text), isAlone: false });
    } else if (last && isAlone && last.isAlone && last.end === line - 1) {
      last.text += `\n${lineText(text)}`;
      last.end = line;
    } else comments.push({ line, end: line, text: lineText(text), isAlone });
  }
  return comments.filter(({ text }) => !/^\s*(biome-ignore|@ts-|#!)/.test(text));
}

const lineText = (text) => text.replace(/^\/\/+ ?/, "");

/** The text of a block comment, line by line. */
function blockText(text) {
  let isCode = false;
  return text
    .replace(/^\/\*+ ?/, "")
    .replace(/\s*\*+\/$/, "")
    .split("\n")
    .map((line) => {
      const content = line.replace(/^\s*\* ?/, "");
      if (/^@\w/.test(content)) isCode = codeTags.test(content);
      if (isCode) return "";
      // A tag begins a paragraph of its own.
      return content.replace(
        /^@(param|returns|throws|property)\s+(\{[^}]*\}\s+)?(\S+\s+[-–]?\s*)?/,
        "",
      );
    })
    .join("\n")
    .replace(/\{@link(?:code|plain)?\s+([^}|\s]+)[^}]*\}/g, "`$1`");
}
