import ts from "typescript";

/**
 * A module whose calls that run when it is loaded are marked as pure, so that bundlers leave out the unused ones of a module of which they
 * need others. All packages declare that they have no side effects.
 *
 * @param {string} source of a module in TypeScript
 */
export const markPure = (source) => {
  const file = ts.createSourceFile("module.ts", source, ts.ScriptTarget.Latest);
  const places = [];
  const visit = (node) => {
    if (ts.isFunctionLike(node) || ts.isClassLike(node) || ts.isExpressionStatement(node)) return;
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) places.push(node.getStart(file));
    ts.forEachChild(node, visit);
  };
  for (const statement of file.statements) if (ts.isVariableStatement(statement)) visit(statement);
  let marked = "";
  let end = 0;
  for (const place of [...new Set(places)].sort((a, b) => a - b)) {
    marked += `${source.slice(end, place)}/* @__PURE__ */ `;
    end = place;
  }
  return marked + source.slice(end);
};
