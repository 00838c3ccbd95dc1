import ts from "typescript";

/** Lines of WGSL end so; those of texts for people, which stay as they are, do not. */
const endOfLine = /[;{}]\n/;

const indentation = /(\n|\\n) +/g;

/**
 * A module whose shaders, templates of several lines, lost their indentation: the same programs in smaller bundles.
 *
 * @param {string} source of a module in TypeScript
 */
export const withoutIndentation = (source) => {
  const file = ts.createSourceFile("module.ts", source, ts.ScriptTarget.Latest);
  const texts = [];
  const visit = (node) => {
    const parts = partsOf(node);
    if (parts.some(({ text }) => endOfLine.test(text))) texts.push(...parts);
    ts.forEachChild(node, visit);
  };
  visit(file);
  let flat = "";
  let end = 0;
  for (const text of texts.sort((a, b) => a.end - b.end)) {
    const start = text.getStart(file);
    flat += source.slice(end, start) + source.slice(start, text.end).replace(indentation, "$1");
    end = text.end;
  }
  return flat + source.slice(end);
};

/** The texts of a template between its expressions. */
function partsOf(node) {
  if (ts.isNoSubstitutionTemplateLiteral(node)) return [node];
  if (!ts.isTemplateExpression(node)) return [];
  return [node.head, ...node.templateSpans.map(({ literal }) => literal)];
}
