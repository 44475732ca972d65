// memctl for OpenCode: hands what happens to memctl's hook, and gives the agent what memory is sure of.
// Written by `memctl install opencode`; `memctl install opencode --uninstall` takes it away.
//
// Each payload has the shape of Claude Code's hooks. The hook is a short process that always ends with 0; should it
// not end, it is killed, and whatever is wrong with it is no trouble of OpenCode's.

import { spawn } from "node:child_process";

const COMMAND = /* command */ [];
const PATIENCE_MS = 4000;

function hook(event, recall, payload) {
  return new Promise((resolve) => {
    let said = "";
    let child;
    try {
      const options = { stdio: ["pipe", "pipe", "ignore"] };
      child = spawn(COMMAND[0], recall ? [...COMMAND.slice(1), "--recall"] : COMMAND.slice(1), options);
    } catch {
      return resolve("");
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    const end = () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(said).hookSpecificOutput.additionalContext ?? "");
      } catch {
        resolve("");
      }
    };
    child.on("error", end);
    child.on("close", end);
    child.stdout.on("data", (part) => (said += part));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ hook_event_name: event, ...payload }));
  });
}

function textOf(parts) {
  return (parts ?? [])
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text)
    .join("\n");
}

export const Memctl = async ({ client, directory }) => {
  const context = new Map();
  const asked = new Map();
  const speakers = new Map();
  const commanded = new Set();

  // Who speaks in a session: "subagent", "program" or "user". OpenCode says it of a session of before a restart, too;
  // of one that it knows nothing of, a program does.
  async function speaker(sessionID, given) {
    if (!speakers.has(sessionID)) {
      let session = given;
      try {
        session ??= (await client.session.get({ path: { id: sessionID } })).data;
      } catch {}
      // `opencode run` lets its session ask nobody anything.
      const asksNobody = (session?.permission ?? []).some((rule) => rule.permission === "question" && rule.action === "deny");
      speakers.set(sessionID, session?.parentID ? "subagent" : session && !asksNobody ? "user" : "program");
    }
    return speakers.get(sessionID);
  }

  async function about(sessionID) {
    const by = (await speaker(sessionID)) === "program" ? { memctl_entrypoint: "opencode-run" } : {};
    return { session_id: sessionID, cwd: directory, ...by };
  }

  async function lastWords(sessionID) {
    try {
      const { data } = await client.session.messages({ path: { id: sessionID } });
      return textOf((data ?? []).filter((message) => message.info.role === "assistant").at(-1)?.parts);
    } catch {
      return "";
    }
  }

  return {
    event: async ({ event }) => {
      const properties = event.properties ?? {};
      if (event.type === "session.created") {
        const session = properties.info ?? {};
        if ((await speaker(session.id, session)) === "subagent") return;
        context.set(session.id, await hook("SessionStart", true, { ...(await about(session.id)), source: "startup" }));
      } else if (event.type === "session.compacted") {
        const id = properties.sessionID;
        await hook("PreCompact", false, { ...(await about(id)), trigger: "auto" });
        context.set(id, await hook("SessionStart", true, { ...(await about(id)), source: "compact" }));
      } else if (event.type === "session.idle") {
        const id = properties.sessionID;
        if ((await speaker(id)) === "subagent") return;
        await hook("Stop", false, { ...(await about(id)), last_assistant_message: await lastWords(id) });
      }
    },
    "command.execute.before": async ({ sessionID }) => {
      commanded.add(sessionID);
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = textOf(parts);
      const from_command = commanded.delete(sessionID);
      const who = await speaker(sessionID);
      if (prompt && who !== "subagent") {
        asked.set(sessionID, await hook("UserPromptSubmit", true, { ...(await about(sessionID)), prompt, from_command }));
      }
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, { output, metadata }) => {
      await hook("PostToolUse", false, {
        ...(await about(sessionID)),
        tool_name: tool,
        tool_use_id: callID,
        tool_input: args ?? {},
        tool_response: { stdout: typeof output === "string" ? output : "", exit_code: metadata?.exit },
      });
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      for (const memory of [context.get(sessionID), asked.get(sessionID)]) {
        if (memory) system.push(memory);
      }
    },
  };
};
