import { posix } from "node:path";
import ts from "typescript";

/**
 * A module in which functions that are certain members of object literals are replaced by one that throws. What they alone needed is then
 * unused, and bundlers drop it.
 *
 * Calls of functions whose answer is known in the variant are replaced by it, and bundlers drop the other branch.
 *
 * Members in short form (`{ reference }`) stay: they pass on what a caller gave. Strings stay, too.
 *
 * @param {string} source of a module in TypeScript
 * @param {string} path of the module within its package, with slashes
 * @param {import("./index.js").LeftOut} leftOut
 */
export const leaveOut = (source, path, { members, within, replacement, from, answers = {} }) => {
  if (!path.startsWith(`${within}/`)) return source;
  const file = ts.createSourceFile("module.ts", source, ts.ScriptTarget.Latest);
  const edits = [];
  let isReplaced = false;
  const replace = (node, text) => edits.push({ start: node.getStart(file), end: node.end, text });
  const leaveOutValue = (value) => {
    if (ts.isConditionalExpression(value)) {
      leaveOutValue(value.whenTrue);
      leaveOutValue(value.whenFalse);
    } else if (!ts.isStringLiteral(value)) leaveOutFunction(value, replacement);
  };
  const leaveOutFunction = (node, text) => {
    isReplaced = true;
    replace(node, text);
  };
  const visitMember = (member) => {
    if (!member.name || !ts.isIdentifier(member.name) || !members.includes(member.name.text))
      visit(member);
    else if (ts.isPropertyAssignment(member)) leaveOutValue(member.initializer);
    else if (ts.isMethodDeclaration(member))
      leaveOutFunction(member, `${member.name.text}: ${replacement}`);
  };
  const visit = (node) => {
    const answer = ts.isCallExpression(node) && answers[node.expression.getText(file)];
    if (answer) replace(node, answer);
    else ts.forEachChild(node, ts.isObjectLiteralExpression(node) ? visitMember : visit);
  };
  visit(file);
  if (edits.length === 0) return source;
  const module = posix.relative(posix.dirname(path), from).replace(/\.ts$/, ".js");
  let left = isReplaced
    ? `import { ${replacement} } from "${module.startsWith(".") ? module : `./${module}`}";\n`
    : "";
  let end = 0;
  for (const edit of edits) {
    left += source.slice(end, edit.start) + edit.text;
    end = edit.end;
  }
  return left + source.slice(end);
};
