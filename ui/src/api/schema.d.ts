// openapi.json sha256 895b618a8bb0967b3f8b97dd6c7867062ad9d6b235bfc0b7352474e5f1de5c40
// Made by `npm run api`; do not edit.
export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check that the process answers.
         * @description Check that the process answers.
         */
        get: operations["healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return counts and times of requests, for Prometheus.
         * @description Return counts and times of requests, for Prometheus.
         */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check that the engine answers; if it does not, say why.
         * @description Check that the engine answers; if it does not, say why.
         */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import observations and schemas of another log unchanged, whoever wrote them.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["admit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bisect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Find the write that changed an answer.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        post: operations["bisect"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blame/{ref}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show every claim on a field, which one won, and why.
         * @description Open to keys with the grant `read`.
         */
        get: operations["blame"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/caller": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show which tenant and agent the key belongs to.
         * @description Open to every key.
         */
        get: operations["caller"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflicts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List fields on which agents disagree, or fields decided only by arrival.
         * @description Open to keys with the grant `read`.
         */
        get: operations["conflicts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/correct": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Correct fields of an entity.
         * @description Open to keys with the grant `correct`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["correct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Mark an entity as deleted; nothing is erased.
         * @description Open to keys with the grant `correct`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["delete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show what changed between two moments.
         * @description Open to keys with the grant `read`.
         */
        get: operations["diff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/diff-against": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compare a state that was written down with the current one.
         * @description Open to keys with the grant `read`.
         */
        post: operations["diff_against"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/duplicates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List entities that share an identifying value.
         * @description Open to keys with the grant `read`.
         */
        get: operations["duplicates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/elements/{ref}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the elements of a collection, page by page.
         * @description Open to keys with the grant `read`.
         */
        get: operations["elements"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/entities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List entities by type and field values.
         * @description Open to keys with the grant `read`.
         */
        get: operations["query"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/entities/{ref}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show an entity: its values, and where each came from.
         * @description Open to keys with the grant `read`.
         */
        get: operations["show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase something for good; earlier proofs still hold.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["erase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erase-again": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repeat the erasures of another copy of this ledger, for example after restoring a backup.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["erase_again"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fingerprint": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compute one digest of the whole state.
         * @description Open to keys with the grant `read`.
         */
        get: operations["fingerprint"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/finish-erasure": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Finish pending erasures: remove their bytes from the files, and search them.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["finish_erasure"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the state of the log and its indexes.
         * @description Open to keys with the grant `read`.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/history/{ref}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show how the state of an entity changed with each observation.
         * @description Open to keys with the grant `read`.
         */
        get: operations["history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/ids/{prefix}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the ids that begin with a prefix.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["ids"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/impact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what depends on an observation, an entity or a source.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["impact"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/interpretations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the interpretations of sources by models and parsers.
         * @description Open to keys with the grant `read`.
         */
        get: operations["interpretations_list"];
        put?: never;
        /**
         * Start an interpretation of a source by a model or parser; store its records through it, then end it.
         * @description Open to keys with the grant `write`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["interpretations_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/interpretations/{interpretation}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show one interpretation: model, prompt and parameters.
         * @description Open to keys with the grant `read`.
         */
        get: operations["interpretations_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/interpretations/{interpretation}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End an interpretation; an ended one stays unchanged.
         * @description Open to keys with the grant `write`.
         */
        post: operations["interpretations_end"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/interpretations/{interpretation}/store": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Store the records of an interpretation; each names the interpretation and its source.
         * @description Open to keys with the grant `write`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["interpretations_store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/interpretations/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare two interpretations of a source.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["interpretations_diff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the keys of the tenant, without secrets.
         * @description Open to keys with the grant `manage`.
         */
        get: operations["keys_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{key}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a key of the tenant: it is invalid from now on.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["keys_revoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lineage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Trace an answer, a decision or a value back to its sources.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["lineage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read entries of the log.
         * @description Open to keys with the grant `read`.
         */
        get: operations["log_entries"];
        put?: never;
        /**
         * Import entries of another log, in whole writes, as exported; known entries change nothing.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["log_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/log/leaves": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return where the log ends and some of its leaf hashes, so that another log can find their common prefix.
         * @description Open to keys with the grant `read`.
         */
        get: operations["log_leaves"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * State that two entities of one type are the same.
         * @description Open to keys with the grant `correct`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["merge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/observations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the observations of an entity, or all of them, in log order.
         * @description Open to keys with the grant `read`.
         */
        get: operations["observations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the end of the log, its growth day by day, and its last checkpoint.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/position": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the position at which the log ends at a moment.
         * @description Open to keys with the grant `read`.
         */
        get: operations["position"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/proofs/{what}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Prove that an observation is in the log under a checkpoint.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["proofs_prove"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/proofs/capsule/{what}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Prove a decision, an observation or a field, offline.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["proofs_capsule"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/proofs/checkpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the checkpoints that the log must extend.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["proofs_checkpoints"];
        put?: never;
        /**
         * Sign the length of the log and its root.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["proofs_checkpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/proofs/consistency": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Prove that a checkpoint extends an older one.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        post: operations["proofs_prove_consistency"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/prove-order": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check that order of arrival does not matter.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["prove_order"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rebuild": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rebuild everything derived from the log, and compare.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["rebuild"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recall": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find memories that answer a question.
         * @description Open to keys with the grant `read`.
         */
        get: operations["recall"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/reduce": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Find the fewest observations that reproduce an answer.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        post: operations["reduce"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/reindex": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rebuild the index that recall searches.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["reindex"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/relate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Relate two entities.
         * @description Open to keys with the grant `write`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["relate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/related/{ref}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the relations of an entity.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["related"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/remember": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remember a sentence as a note about an entity.
         * @description Open to keys with the grant `write`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["remember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Bring a deleted entity back.
         * @description Open to keys with the grant `correct`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["restore"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/retract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw observations; they stay readable.
         * @description Open to keys with the grant `correct`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["retract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs, the latest first, a summary of each.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["runs_list"];
        put?: never;
        /**
         * Start a run; its steps are then recorded one by one.
         * @description Open to keys with the grant `run`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["runs_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show what a run read, called, decided, wrote and answered.
         * @description Open to keys with the grant `read`.
         */
        get: operations["runs_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a run, with its answer.
         * @description Open to keys with the grant `run`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["runs_end"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Record steps of a run, and its end, as entries; known entries change nothing.
         * @description Open to keys with the grant `run`.
         */
        post: operations["runs_entries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/evaluate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compare the writes of a run with a state known to be good, and store the outcome.
         * @description Open to keys with the grant `run`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["runs_evaluate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/judge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Judge a run: good, bad, or a word of your own.
         * @description Open to keys with the grant `run`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["runs_judge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the reports of a run's writes, by idempotency key; a replay elsewhere needs them.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["runs_receipts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume an interrupted run in another process: return its entries, and the entries of its child runs.
         * @description Open to keys with the grant `run`.
         */
        post: operations["runs_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/snapshot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return a run in the snapshot format, which other tools read.
         * @description Open to keys with the grant `read`.
         */
        get: operations["runs_snapshot"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the steps of a run in the order they happened, some at a time.
         * @description Open to keys with the grant `read`.
         */
        get: operations["runs_steps"];
        put?: never;
        /**
         * Record a step of a run: read, tool, model, decide, select, decided, note, store or change. The server makes the decisions by rules.
         * @description Open to keys with the grant `run`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["runs_step"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return a run as text for a person or a prompt, within a budget of tokens.
         * @description Open to keys with the grant `read`.
         */
        get: operations["runs_text"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compare two runs: where they diverge, and why.
         * @description Open to keys with the grant `read`.
         */
        post: operations["runs_diff"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/group": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Group runs, and explain how good and bad ones differ.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        post: operations["runs_group"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import runs that other tools recorded.
         * @description Open to keys with the grant `run`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["runs_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schemas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the schemas in force.
         * @description Open to keys with the grant `read`.
         */
        get: operations["schemas_list"];
        put?: never;
        /**
         * Register a JSON Schema as the next version for a type.
         * @description Open to keys with the grant `manage`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["schemas_register"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schemas/{entity_type}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the schema of a type.
         * @description Open to keys with the grant `read`.
         */
        get: operations["schemas_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schemas/{entity_type}/infer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Infer a JSON Schema from the stored entities of a type.
         * @description Open to keys with the grant `read`.
         */
        get: operations["schemas_infer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/schemas/packs/{pack}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Register all schemas of a pack.
         * @description Open to keys with the grant `manage`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["schemas_add_pack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find entities by words, each matched by prefix.
         * @description Open to keys with the grant `read`.
         */
        get: operations["search"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of sources.
         * @description Open to keys with the grant `read`.
         */
        get: operations["sources_list"];
        put?: never;
        /**
         * Add a source as it was received.
         * @description Open to keys with the grant `write`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["sources_add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sources/{source}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a source with its content.
         * @description Open to keys with the grant `read`.
         */
        get: operations["sources_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/split": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo merges of an entity, all of them or one.
         * @description Open to keys with the grant `correct`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["split"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stale": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List decisions whose evidence has changed since.
         * @description Open to keys with the grant `read`.
         */
        get: operations["stale"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stale/new": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List decisions that writes after a position made stale, and the position to ask after next.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["stale_new"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/store": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Store observations of an agent: all of them, or none.
         * @description Open to keys with the grant `write`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tag": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Name a moment, to read at it as @NAME.
         * @description Open to keys with the grant `manage`. With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.
         */
        post: operations["tag"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List observations by time, across all entities.
         * @description Open to keys with the grant `read`.
         */
        get: operations["timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/traces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Receive spans over OTLP/HTTP and record them as runs.
         * @description Spans of the GenAI and OpenInference conventions become runs.
         */
        post: operations["traces"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/values": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the values of everything that exists, by reference and without provenance.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["values"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check the log and everything derived from it.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["verify"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks.
         * @description Open to keys with the grant `manage`.
         */
        get: operations["webhooks_list"];
        put?: never;
        /**
         * Add a webhook: send new entries to a URL, signed with a secret that is shown this once.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["webhooks_add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{webhook}/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove a webhook.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["webhooks_remove"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{webhook}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send deliveries again that were given up.
         * @description Open to keys with the grant `manage`.
         */
        post: operations["webhooks_retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List deliveries that were given up.
         * @description Open to keys with the grant `manage`.
         */
        get: operations["webhooks_dead_letters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/what-if": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Show how decisions would change with other facts or rules.
         * @description Open to keys with the grant `read`.
         */
        post: operations["what_if"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/why/{ref}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the decisions about an entity, and their evidence.
         * @description Open to keys with the grant `read`. A grant for one type is not enough.
         */
        get: operations["why"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A source that was added. */
        AddedSource: {
            /** @description How long it is. */
            bytes: number;
            /** @description Its id. */
            source: string;
        };
        /** @description A webhook that was added, with its secret. */
        AddedWebhook: {
            /** @description Its id. */
            id: string;
            /** @description Kinds of entries that are sent; empty means all. */
            kinds: string[];
            /** @description The last delivered position. */
            position: number;
            /** @description The secret that signs its deliveries; it is never shown again. */
            secret: string;
            /** @description The tenant whose log is sent. */
            tenant: string;
            /** @description Its address. */
            url: string;
        };
        /** @description A decision whose evidence what was asked about is part of. */
        AffectedDecision: {
            /** @description The decision. */
            decision: components["schemas"]["Decision"];
            /** @description Names of the facts it is part of. */
            facts: string[];
        };
        /** @description A read that saw what was asked about. */
        AffectedRead: {
            /** @description The fields it saw it in. */
            fields: string[];
            /** @description The read. */
            read: components["schemas"]["Read"];
            /** @description Of a recall, the runs that lean on it which were found. */
            runs: string[];
        };
        /** @description A run that leaned on what was asked about, and where in it. */
        AffectedRun: {
            /** @description Who ran. */
            agent: string | null;
            /** @description What it answered. */
            answer: unknown;
            /** @description The decisions whose evidence it is part of. */
            decisions: components["schemas"]["AffectedDecision"][];
            /** @description How many runs away it is: 1 for a run that leaned on it directly. */
            distance: number;
            /** @description What was asked. */
            query: string | null;
            /** @description The reads that saw it. */
            reads: components["schemas"]["AffectedRead"][];
            /** @description The run. */
            run: string;
            /** @description How it stands. */
            status: string;
            /** @description The entity it is about. */
            subject: string | null;
            /** @description What it leaned on first: an observation, a decision as RUN#stage, or a run that it recalled. */
            through: string;
            /** @description The run that this comes from; none where it is what was asked about. */
            through_run: string | null;
            /** @description What the run said afterwards. */
            writes: components["schemas"]["Write"][];
        };
        /** @description One fact that a decision was made on, as it was believed then and as it is believed now. */
        Belief: {
            /** @description The reason they gave for it; none where they gave none. */
            because: string | null;
            /** @description What was believed; null also where nothing was. */
            before: unknown;
            /** @description `corrected`, `retracted`, `superseded`, `deleted`, or `stated` where there was nothing before. */
            change: string;
            /** @description Who said what changed it; none where that is not known. */
            changed_by: string | null;
            /** @description The entity it was read from. */
            entity: string;
            /** @description The field. */
            field: string;
            /** @description What the decision calls it. */
            key: string;
            /** @description Whether nothing is believed now. */
            missing: boolean;
            /** @description What is believed now; null also where nothing is. */
            now: unknown;
            /** @description The observations behind it then. */
            observations: string[];
            /** @description The observations behind it now. */
            observations_now: string[];
            /** @description Why the earlier one no longer holds, in a clause. */
            reason: string;
        };
        /** @description The result of a bisect. */
        Bisected: {
            /** @description The answers at both; where the first flip was looked for, the second is that after it. */
            answers: boolean[];
            /** @description The position it ends at, an end of a write. */
            end: number;
            /** @description True if it is the first flip; otherwise it is one of several. */
            first: boolean;
            /** @description The flip; None if both answers are the same, or if the first flip was asked for and there is none. */
            flip: components["schemas"]["Flip"] | null;
            /** @description How many states were folded to find it. */
            folds: number;
            /** @description How entities were found that were asked about by values that identify them. */
            matched?: components["schemas"]["Match"][];
            /** @description The question, in words. */
            question: string;
            /** @description The result, in a sentence. */
            sentence: string;
            /** @description The position it begins at, an end of a write. */
            start: number;
        };
        /** @description Every claim on the fields of an entity: a mapping of the fate of each, by field. */
        Blame: {
            /** @description The fate of every claim, by field: claims that take part first, then the others, latest first. */
            claims: {
                [key: string]: components["schemas"]["Verdict"][];
            };
            /** @description The entity. */
            entity: string;
            /** @description How the entity was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at. */
            position: number;
        };
        /** @description Why two runs differ at one step. */
        Cause: {
            /** @description What became of the part: `changed`, `added`, `removed`, `renamed`, `moved`, `reordered` or `retyped`. */
            change: string | null;
            /** @description What the clause speaks of, for programs. */
            details: {
                [key: string]: unknown;
            };
            /** @description What the first run has there, whole. */
            first: unknown;
            /** @description One of `KINDS`. */
            kind: string;
            /** @description `wording`, `behaviour` or `outcome`. */
            level: string;
            /** @description Where the second run has it. */
            other_path: string | null;
            /** @description Where the first run has that part, within the arguments, the result or the fields; none where it has none. */
            path: string | null;
            /** @description What the second run has there, whole. */
            second: unknown;
            /** @description The observation that changed what was read, where the log has it. */
            statement: components["schemas"]["Statement"] | null;
            /** @description The cause as a clause. */
            text: string;
        };
        /** @description The effects of one erasure, done or planned. */
        Certificate: {
            /** @description The requester. */
            agent: string;
            /** @description Whether every file of the store was searched and contains none of it; never true without a search. */
            complete: boolean;
            /** @description Derived data that was dropped and made again without the erased data. */
            derived: string[];
            /** @description Whether nothing was erased. */
            dry_run: boolean;
            /** @description The log's time of the erasure; None for a dry run. */
            erased_at: string | null;
            /** @description Per file, how often erased text was found in it afterwards; empty if nowhere. */
            hits: {
                [key: string]: number;
            };
            /** @description Number of erased entries, by kind. */
            kinds: {
                [key: string]: number;
            };
            /** @description The log's name. */
            log: string | null;
            /** @description Position of the `erasure` entry; None for a dry run. */
            position: number | null;
            /** @description Positions with removed bodies and nonces, as inclusive ranges. */
            positions: number[][];
            /** @description True if no file keeps older versions of its pages; otherwise a reader is in the way, and `finish` completes it. */
            purged: boolean;
            /** @description Positions that were found by a text they quote. */
            quoting: number[];
            /** @description Why. */
            reason: string;
            /** @description Forgotten idempotency keys, whose reports or requests contained erased data. */
            receipts: number;
            /** @description Number of entries rewritten without the erased parts, by kind. */
            resaid: {
                [key: string]: number;
            };
            /** @description Current ids of the rewritten observations and sources. */
            resaid_ids: string[];
            /** @description Fields, as REF#field, with another value now: a claim that lost against the erased one. */
            returned: string[];
            /** @description Root of the log's tree afterwards, in hex. Every proof against an earlier root still holds. */
            root: string;
            /** @description Root of the log's tree before, in hex. */
            root_before: string;
            /** @description Files searched byte by byte; None for a ledger without files, whose rows were searched. */
            scanned: string[];
            /** @description Number of searched bytes; None in files shared with other tenants. */
            scanned_bytes: number | null;
            /** @description Its scope: `entity`, `field`, `source`, `agent` or `subject`. */
            scope: string;
            /** @description Whether every file was searched for it afterwards, from the first byte to the last. */
            searched: boolean;
            /** @description Fields with values that other entries state too, and the positions of those. */
            shared: {
                [key: string]: number[];
            };
            /** @description Fields with values too short for a search in texts, and the length of the shortest. */
            short: {
                [key: string]: number;
            };
            /** @description Remains that are related to it, and why they must or may stay. */
            stays: components["schemas"]["Stays"][];
            /** @description The tenant. */
            tenant: string;
            /** @description Recorded values that cannot be searched whole: cut for their size, or bytes that are no text. */
            unsearched: number;
            /** @description Work left elsewhere. */
            warnings: string[];
        };
        /** @description What a write changed in one entity. */
        Change: {
            /** @description The entity, as a reference. */
            entity: string;
            /** @description Fields before and after, by name. */
            fields: components["schemas"]["FieldChange"][];
            /** @description Whether it is deleted after. */
            is_deleted: boolean;
            /** @description Whether it was deleted before. */
            was_deleted: boolean;
        };
        /** @description The differences between two states, by entity; iterable, and false when empty. */
        Changes: {
            /** @description The log position that the later moment means. */
            after: number;
            /** @description The log position that the earlier moment means; None: a state that was written down. */
            before: number | null;
            /** @description The entities that differ, by reference. */
            changes: components["schemas"]["EntityChange"][];
            /** @description How the entity was found, if by an identifying value. */
            matched?: components["schemas"]["Match"] | null;
        };
        /** @description The size of a log, and its root. */
        Checkpoint: {
            /** @description The epoch of the log's checkpoints: 1 unless the operator began a new one. */
            epoch: number;
            /** @description Extension lines; Woodrat's is `epoch N`, from the second epoch on. */
            extensions: string[];
            /** @description The log's own name. */
            log: string;
            /** @description The root of the tree over them. */
            root: string;
            /** @description Number of covered entries: positions 0 to size − 1. */
            size: number;
        };
        /** @description A decision by rules that are data, made on state, and the branch it is asked about. */
        Choice: {
            /** @description The branch: the predicate holds where this is chosen. */
            chosen: unknown;
            /** @description The choice if no rule matches. */
            default: unknown;
            /** @description Facts that are not, as they were. */
            facts: {
                [key: string]: unknown;
            };
            /** @description `decide` takes the first rule that matches, `select` all of them. */
            mode: string;
            /** @description Whether a rule that is unknown makes the decision fail (`raise`), or is skipped (`skip`). */
            on_missing: string;
            /** @description Facts that are read from state, by name. */
            reads: {
                [key: string]: components["schemas"]["FieldRead"];
            };
            /** @description The rules, in order. */
            rules: components["schemas"]["Rule"][];
            /** @description The choice to test. */
            stage: string | null;
        };
        /** @description How many decisions would choose something. */
        ChoiceCount: {
            /** @description Their choice. */
            chosen: unknown;
            /** @description How many would. */
            decisions: number;
        };
        /** @description Metadata about the claim. */
        ClaimMetadata: {
            /** @description how sure the writer is */
            confidence?: number;
            /** @description the entity's key, where no field makes it */
            key?: string;
            /** @description where in the source it was read */
            locator?: {
                end_line?: number;
                line?: number;
                page?: number;
                /** @description JSON Pointer */
                pointer?: string;
                /** @description the exact words */
                quote?: string;
            };
            /** @description when it was seen, RFC 3339 with an offset */
            observed_at?: string;
            /** @description trust in the writer; the larger wins */
            priority?: number;
            /** @description why it is stated */
            reason?: string;
            /** @description relations to other entities */
            relate?: Record<string, unknown>[];
            /** @description elements to take out of collections, by field */
            remove?: Record<string, unknown>;
            /** @description id of the source it was read from */
            source?: string;
            /** @description since when it is true */
            valid_from?: string;
        };
        /** @description Runs that took one way. */
        Cluster: {
            /** @description How many of them did the same to the end. */
            agree: number;
            /** @description What its representative answered. */
            answer: unknown;
            /** @description How many are bad. */
            bad: number;
            /** @description Why it parts there; none for the main one, and where it was not compared. */
            cause: components["schemas"]["Cause"] | null;
            /** @description Those of its runs that part further on, the largest first. */
            clusters: components["schemas"]["Cluster"][];
            /** @description What its representative decided. */
            decisions: components["schemas"]["StageChoice"][];
            /** @description How its representative ended, in short. */
            ending: string;
            /** @description How many of its runs are good, those of its own clusters included; 0 where nothing is known of that. */
            good: number;
            /** @description What stands there, as a sentence says it. */
            label: string | null;
            /** @description Id of the earliest run that did the same to the end. */
            representative: string;
            /** @description Ids of its runs by when they began, those of its own clusters included. */
            runs: string[];
            /** @description How many runs it has. */
            size: number;
            /** @description The step at which it parts from those it stands under; none for the main one, or with nothing in common. */
            step: number | null;
        };
        /** @description One of the claims in conflict. */
        CompactContender: {
            /** @description Who said so. */
            agent: string;
            /** @description The observation that makes it. */
            observation: string;
            /** @description When they saw it. */
            observed_at: string;
            /** @description What they said. */
            value: unknown;
        };
        /** @description A choice the run made: stage, chosen branch, rule, evidence. */
        CompactDecision: {
            /** @description The branch taken; a list under `select`. */
            chosen: unknown;
            /** @description The values that the rules which matched looked at, by name, and `threshold` if there was one to compare with. */
            evidence: {
                [key: string]: unknown;
            };
            /** @description Label of the rule that matched, a list of them under `select`; null when none did. */
            rule: unknown;
            /** @description What was decided. */
            stage: string;
        };
        /** @description One delivery of a source: agent, time and name. */
        CompactDelivery: {
            /** @description Who delivered it. */
            agent: string;
            /** @description Its stated media type. */
            media_type: string | null;
            /** @description Its stated name, such as a file name. */
            name: string;
            /** @description When it was received (fixed-width UTC). */
            received_at: string;
            /** @description Id of the source. */
            source: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactDeliveryPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactDelivery"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A conflict (`Conflict`) with the entity it is in. */
        CompactEntityConflict: {
            /** @description Whether the field was decided only by arrival: no observation time was given. */
            by_arrival: boolean;
            /** @description The claims in conflict; of a field decided only by arrival, the winner first. */
            claims: components["schemas"]["CompactContender"][];
            /** @description The entity, or the one that stands for those it is joined with. */
            entity: string;
            /** @description The field. */
            field: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactEntityConflictPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactEntityConflict"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One observation in order of observation time. */
        CompactEvent: {
            /** @description What was said. */
            observation: components["schemas"]["CompactObservation"];
            /** @description Where it stands in the log. */
            position: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactEventPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactEvent"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One entity that a search found. */
        CompactHit: {
            /** @description Whether the query is its key or an identifying value, but for the case of A to Z and for spaces. */
            exact: boolean;
            /** @description Fields in which any of the query's words begins a word, by name; a hit on the key alone has none. */
            fields: string[];
            /** @description What is believed about it. */
            snapshot: components["schemas"]["CompactSnapshot"];
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactHitPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactHit"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One reading of a source; `status` is `started` until its end is recorded. */
        CompactInterpretation: {
            /** @description Who read it. */
            agent: string;
            /** @description Why it failed. */
            error: string | null;
            /** @description A new id: an interpretation is an event, and is not deduplicated. */
            id: string;
            /** @description Which model read it, if one did. */
            model: string | null;
            /** @description Id of the source that was read. */
            source: string;
            /** @description When the interpretation began. */
            started_at: string;
            /** @description `started`, `done` or `error`. */
            status: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactInterpretationPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactInterpretation"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description Cost of rewriting the file without the erased data, estimated or measured. */
        Compaction: {
            /** @description Estimated time that other writers would wait. */
            estimated_seconds: number;
            /** @description Required free disk space. */
            needed_bytes: number | null;
            /** @description Time that they waited; None without a compaction. */
            seconds: number | null;
            /** @description How large it is afterwards. */
            size_after_bytes: number | null;
            /** @description How large the file was before; none, as all sizes, in a file that tenants share. */
            size_bytes: number | null;
        };
        /** @description One statement about one entity: the body of its entry, and its id. */
        CompactObservation: {
            /** @description Who says so. */
            agent: string;
            /** @description Its subject. */
            entity: {
                key: string;
                type: string;
            };
            /** @description Field values stated. */
            fields?: Record<string, unknown>;
            /** @description The short name people see. */
            id: string;
            /** @description When the writer saw it. */
            observed_at: string;
            /**
             * @description What it does.
             * @enum {unknown}
             */
            op: "assert" | "correct" | "delete" | "restore" | "retract";
            /** @description Elements taken out of collections, by field. */
            remove?: Record<string, unknown>;
        };
        /** @description One decision about a subject, with the run it was made in and what that run answered. */
        CompactReason: {
            /** @description Who decided. */
            agent: string | null;
            /** @description What the run answered. */
            answer: unknown;
            /** @description When it was made. */
            decided_at: string | null;
            /** @description What was decided, by which rule and on what evidence. */
            decision: components["schemas"]["CompactDecision"];
            /** @description What was asked. */
            query: string | null;
            /** @description The run. */
            run: string;
            /** @description How the run stands. */
            status: string;
            /** @description The entity the run is about; another one when its evidence was read from the entity asked about. */
            subject: string | null;
            /** @description What was thought of it. */
            verdict: string | null;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactReasonPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactReason"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description The schema of one entity type, at one version. */
        CompactSchema: {
            /** @description The short name people see. */
            id: string;
            /** @description The entity type it describes. */
            type: string;
            /** @description The stated version; 0 for a type without a schema. */
            version: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactSchemaPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactSchema"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description The state of one entity at one moment. */
        CompactSnapshot: {
            /** @description The entity asked about. */
            entity: string;
            /** @description The value of each field; of a large collection the first elements. */
            fields: {
                [key: string]: unknown;
            };
            /** @description Sizes of collections cut to their first elements. */
            more: {
                [key: string]: number;
            };
            /** @description Position of the last entry that touched it: what `if_version` compares. */
            version: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactSnapshotPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactSnapshot"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A decision whose evidence is believed otherwise now. */
        CompactStale: {
            /** @description Who decided. */
            agent: string | null;
            /** @description What was decided, by which rule and on what evidence. */
            decision: components["schemas"]["CompactDecision"];
            /** @description `flip`, `same` or `unknown`. */
            outcome: string;
            /** @description What was asked. */
            query: string | null;
            /** @description The run it was made in. */
            run: string;
            /** @description What would come of the decision now, in a few words. */
            sentence: string;
            /** @description The entity the run is about. */
            subject: string | null;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactStalePage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactStale"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One observation and its changes. */
        CompactStep: {
            /** @description Fields it changed, before and after; empty when it lost or was late. */
            changes: components["schemas"]["FieldChange"][];
            /** @description Whether the entity was deleted after it. */
            deleted: boolean;
            /** @description What was said. */
            observation: components["schemas"]["CompactObservation"];
            /** @description Its position in the log. */
            position: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactStepPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactStep"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description An observation and its place in the log. */
        CompactStored: {
            /** @description Who says so. */
            agent: string;
            /** @description Its subject. */
            entity: {
                key: string;
                type: string;
            };
            /** @description Field values stated. */
            fields?: Record<string, unknown>;
            /** @description The short name people see. */
            id: string;
            /** @description When the writer saw it. */
            observed_at: string;
            /**
             * @description What it does.
             * @enum {unknown}
             */
            op: "assert" | "correct" | "delete" | "restore" | "retract";
            /** @description Its position in the log. */
            position: number;
            /** @description Elements taken out of collections, by field. */
            remove?: Record<string, unknown>;
        };
        /** @description Some items of a list, in order; false when there are none. */
        CompactStoredPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["CompactStored"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One comparison a rule made. */
        Condition: {
            /** @description What the fact was. */
            actual: unknown;
            /** @description What went wrong while comparing. */
            error: unknown;
            /** @description The fact looked at. */
            key: string;
            /** @description The operator, such as `lt`; empty when a predicate only looked at the fact. */
            op: string;
            /** @description What the fact was compared with. */
            operand: unknown;
            /** @description Where the actual value came from: a read, an input, a tool, a model, or `stated`. */
            origin: {
                [key: string]: unknown;
            };
            /** @description Whether the condition held; none where that is unknown: no such fact, or one that cannot be compared. */
            result: boolean | null;
        };
        /** @description A field on which the latest claims of two agents differ, neither having seen the other's. */
        Conflict: {
            /** @description Whether the field was decided only by arrival: no observation time was given. */
            by_arrival: boolean;
            /** @description The claims in conflict, by digest; one of them may be the winner. */
            claims: components["schemas"]["Contender"][];
            /** @description The field. */
            field: string;
        };
        /** @description One of the claims in conflict. */
        Contender: {
            /** @description Who said so. */
            agent: string;
            /** @description Whether the log set the time, because they stated none. */
            assigned: boolean;
            /** @description Whether it is a correction. */
            corrects: boolean;
            /** @description The observation that makes it. */
            observation: string;
            /** @description When they saw it. */
            observed_at: string;
            /** @description Elements that are out of a collection because they took them out, where that was decided by arrival. */
            removed: unknown[];
            /** @description What they said. */
            value: unknown;
        };
        /** @description Many runs, clustered by what they did. */
        Crowd: {
            /** @description Which inputs differ between the runs, the question included, sorted. */
            differing_inputs: string[];
            /** @description The way most took; the others stand under it. */
            main: components["schemas"]["Cluster"];
            /** @description Whether all runs did the same. */
            same: boolean;
            /** @description All of it in a few plain sentences. */
            sentence: string;
            /** @description What separates the bad runs from the good ones; none where no run has a verdict, a reward or an error. */
            separation: components["schemas"]["Separation"] | null;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
            /** @description How many runs there are. */
            total: number;
        };
        /** @description Runs that lean on one another. */
        Cycle: {
            /** @description How many they are. */
            run_count: number;
            /** @description The first of them, as they were found. */
            runs: string[];
            /** @description What it says, in one line. */
            sentence: string;
        };
        /** @description How many entries were recorded on one day. */
        DayCount: {
            /** @description The day, in UTC, such as `2026-11-16`. */
            day: string;
            /** @description How many entries the log got. */
            entries: number;
        };
        /** @description A choice the run made: stage, chosen branch, rule, evidence. */
        Decision: {
            /** @description What else an import said of it. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description The branch taken; a list under `select`. */
            chosen: unknown;
            /** @description Who chose without rules: `{"model", "span", "step"}` of the model's call, or `{"agent"}`; none for rules. */
            chosen_by: {
                [key: string]: unknown;
            } | null;
            /** @description Whether no rule matched. */
            default: boolean;
            /** @description The values that the rules which matched looked at, by name, and `threshold` if there was one to compare with. */
            evidence: {
                [key: string]: unknown;
            };
            /** @description The values given, by name. */
            facts: {
                [key: string]: unknown;
            };
            /** @description Where they came from, by name. */
            facts_origin: {
                [key: string]: unknown;
            };
            /** @description The facts it looked at, their documents, and what became of them since; only `why` and `runs show` look it up. */
            looked_at: components["schemas"]["Evidence"][];
            /** @description How near it was to another choice; `why` and `runs show` work it out, elsewhere there is none. */
            margin: components["schemas"]["Margin"] | null;
            /** @description `decide` takes the first match, `select` all of them. */
            mode: string;
            /** @description How many rules and conditions were left out of the record for their number. */
            omitted: {
                [key: string]: unknown;
            };
            /** @description `skip` where rules that are unknown were to be skipped; none where one makes the decision fail. */
            on_missing: string | null;
            /** @description What would have been chosen had no rule matched. */
            otherwise: unknown;
            /** @description Where the entry stands in the log. */
            position: number;
            /** @description What the agent itself said about it. */
            rationale: string | null;
            /** @description Label of the rule that matched, a list of them under `select`; null when none did. */
            rule: unknown;
            /** @description The rules up to and including the match, in order. */
            rules: components["schemas"]["Tried"][];
            /** @description What tells equal steps apart. */
            span: string;
            /** @description What was decided. */
            stage: string;
            /** @description When the step began, fixed-width UTC; none when the entry does not say. */
            started_at: string | null;
            /** @description The recorder's own count of steps. */
            step: number;
            /** @description Span of the tool or model call inside which it happened. */
            under: string | null;
            /** @description The rules after the match, which were not looked at; none where the record does not say. */
            untried: components["schemas"]["Tried"][] | null;
        };
        /** @description What a decision would come to on other facts. */
        DecisionNow: {
            /** @description What would be chosen; null where that is not known. */
            chosen: unknown;
            /** @description `same`, `flip` or `unknown`. */
            outcome: string;
            /** @description Why, in a clause. */
            reason: string;
            /** @description Label of the rule that would match, a list of them under `select`. */
            rule: unknown;
        };
        /** @description One delivery of a source: agent, time and name. */
        Delivery: {
            /** @description Who delivered it. */
            agent: string;
            /** @description Its stated media type. */
            media_type: string | null;
            /** @description Its stated name, such as a file name. */
            name: string;
            /** @description When it was received (fixed-width UTC). */
            received_at: string;
            /** @description Id of the source. */
            source: string;
            /** @description Digest of the content. */
            source_digest: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        DeliveryPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Delivery"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description Two runs side by side: where they part, and why. */
        Divergence: {
            /** @description Why they part there; none when nothing differs. */
            cause: components["schemas"]["Cause"] | null;
            /** @description How many of them differ. */
            differing: number;
            /** @description Where one run is a fork of the other, what was edited: as `forked_from` of the fork. */
            edit: {
                [key: string]: unknown;
            } | null;
            /** @description Id of the first run. */
            first: string;
            /** @description `behaviour` where they did something else, `outcome` where only what came of it differs, `wording`, or `none`. */
            level: string;
            /** @description Rows of steps that the two runs took in another order, which makes no difference. */
            reordered: number[];
            /** @description Both runs, side by side. */
            rows: components["schemas"]["StepPair"][];
            /** @description Whether they did the same and came to the same: the level is `none` or `wording`. */
            same: boolean;
            /** @description Id of the second. */
            second: string;
            /** @description All of it in one sentence. */
            sentence: string;
            /** @description Values that every run makes up anew and that neither run used, row by row. */
            set_aside: components["schemas"]["SetAside"][];
            /** @description How many rows stand before those of this page; of those that differ, where only these were asked for. */
            skipped: number;
            /** @description The row at which they part; none when nothing differs or they have nothing in common. */
            step: number | null;
            /** @description How many rows there are in all. */
            total: number;
            /** @description That the wording differed before the row at which they part, and where first; none where it did not. */
            wording: string | null;
        };
        /** @description A source that an observation came from. */
        Document: {
            /** @description Who delivered it. */
            agent: string | null;
            /** @description What it was called when it was delivered. */
            name: string | null;
            /** @description The observation that came from it. */
            observation: string;
            /** @description The source. */
            source: string;
        };
        /** @description An identifying value that several entities have, which are not joined. */
        Duplicate: {
            /** @description The entities, by key; `merge` joins two of them. */
            entities: string[];
            /** @description The identity rule, such as `email` or `name+company`. */
            rule: string;
            /** @description Their type. */
            type: string;
            /** @description The key the rule makes of their values. */
            value: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        DuplicatePage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Duplicate"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description Some elements of a collection, in its order. */
        Elements: {
            /** @description What to ask with for those that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The elements of this page. */
            elements: unknown[];
            /** @description The entity asked about. */
            entity: string;
            /** @description The field whose value the collection is. */
            field: string;
            /** @description How the entity was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description How many the collection has. */
            total: number;
        };
        /** @description A reading of a source that has ended. */
        EndedReading: {
            /** @description Its id. */
            interpretation: string;
            /** @description How it ended: done or error. */
            status: string;
        };
        /** @description A run that has ended. */
        EndedRun: {
            /** @description True if an earlier call with the same key ended it. */
            repeated: boolean;
            /** @description The run. */
            run: string;
            /** @description Its status: done, error or cancelled. */
            status: string;
        };
        /** @description One entity before and after. */
        EntityChange: {
            /** @description The entity, or the smallest of a group, as a reference. */
            entity: string;
            /** @description Fields that differ, by name. */
            fields: components["schemas"]["FieldChange"][];
            /** @description Whether it is deleted after. */
            is_deleted: boolean;
            /** @description `added`, `removed` or `changed`. */
            kind: string;
            /** @description The group after. */
            members_after: string[];
            /** @description The group before. */
            members_before: string[];
            /** @description Whether it was deleted before. */
            was_deleted: boolean;
        };
        /** @description Conditions on one entity. */
        EntityConditions: {
            /** @description Whether it must be deleted. */
            deleted: boolean | null;
            /** @description The entity. */
            entity: string;
            /** @description Whether it must exist. */
            exists: boolean | null;
            /** @description Conditions by field, as a rule has them: `{"creditScore": {"lt": 600}}`. */
            when: {
                [key: string]: unknown;
            };
            /** @description Fields and values they must have, as a query asks: a collection must hold the value. */
            where: (string | unknown)[][];
        };
        /** @description A conflict (`Conflict`) with the entity it is in. */
        EntityConflict: {
            /** @description Whether the field was decided only by arrival: no observation time was given. */
            by_arrival: boolean;
            /** @description The claims in conflict; of a field decided only by arrival, the winner first. */
            claims: components["schemas"]["Contender"][];
            /** @description The entity, or the one that stands for those it is joined with. */
            entity: string;
            /** @description The field. */
            field: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        EntityConflictPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["EntityConflict"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One entry of a log. */
        Entry: {
            /** @description The content; null once erased. */
            body: unknown;
            /** @description SHA-256 of nonce and body, in hex; it stays when both are erased. */
            commitment: string;
            /** @description Which write the entry belongs to. */
            envelope: {
                [key: string]: unknown;
            };
            /** @description The format of the log. */
            format: number;
            /** @description What kind of entry it is. */
            kind: string;
            /** @description The log's own name. */
            log: string;
            /** @description Sixteen random bytes, in hex; null once erased. */
            nonce: string | null;
            /** @description Place in the log: 0, 1, 2 and so on. */
            position: number;
            /** @description The log's clock at the write. */
            recorded_at: string;
        };
        /** @description One observation in order of observation time. */
        Event: {
            /** @description What was said. */
            observation: components["schemas"]["Observation"];
            /** @description When it was seen. */
            observed_at: string;
            /** @description Where it stands in the log. */
            position: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        EventPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Event"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One fact that a decision looked at, what it came from, and what became of it since. */
        Evidence: {
            /** @description The documents behind it. */
            documents: components["schemas"]["Document"][];
            /** @description Name of the fact. */
            fact: string;
            /** @description Where it came from, in words, such as `lookup_credit_bureau(application=42)`. */
            origin: string;
            /** @description What became of it since; none where it is still believed, or did not come from state. */
            since: components["schemas"]["LaterChange"] | null;
            /** @description Whether it is said to be read, and the log does not show it at the position it is said to be read at. */
            unchecked: boolean;
            /** @description What it was; null also where it was missing. */
            value: unknown;
        };
        /** @description An export with rows of runs that depend on the subject of the question. */
        Export: {
            /** @description Who exported. */
            agent: string;
            /** @description The position it was read at. */
            as_of: number;
            /** @description When it was recorded. */
            at: string;
            /** @description `trl` or `openai`. */
            flavour: string;
            /** @description The reference of its `audit_event`. */
            id: string;
            /** @description `sft`, `dpo`, `kto` or `process-rl`. */
            kind: string;
            /** @description Number of rows from these runs. */
            leaning: number;
            /** @description Name of the file, if any. */
            out: string | null;
            /** @description Position of that entry. */
            position: number;
            /** @description Number of rows. */
            rows: number | null;
            /** @description These runs. */
            runs: string[];
            /** @description A summary of the export and its dependent rows. */
            sentence: string;
            /** @description Digest of the bytes written, in hex. */
            sha256: string | null;
        };
        /** @description One fact that a decision was made on and that would be another. */
        FactChange: {
            /** @description The recorded value; also null if there was none. */
            before: unknown;
            /** @description The entity it was read from; None if it was not read. */
            entity: string | null;
            /** @description The field. */
            field: string | null;
            /** @description Its name in the decision. */
            key: string;
            /** @description Whether there would be nothing. */
            missing: boolean;
            /** @description The supposed value; also null if there would be none. */
            now: unknown;
            /** @description The observations behind it on record. */
            observations: string[];
            /** @description The observations that would be behind it; none of a value that is supposed. */
            observations_now: string[];
        };
        /** @description Where facts of a decision came from. */
        FactSource: {
            /** @description What tells it apart from others of its kind. */
            id: string;
            /** @description `document`, `observation`, `tool`, `model`, `input` or `stated`. */
            kind: string;
            /** @description What people call it. */
            label: string;
        };
        /** @description One field before and after. `had` and `has` distinguish null from absent. */
        FieldChange: {
            /** @description The value after; null where it has none. */
            after: unknown;
            /** @description The value before; null where it had none. */
            before: unknown;
            /** @description The field. */
            field: string;
            /** @description Whether it had a value before. */
            had: boolean;
            /** @description Whether it has a value after. */
            has: boolean;
            /** @description Whether a large collection shows only its added and removed elements; false if all of them changed. */
            part: boolean;
        };
        /** @description Where a fact is read from. */
        FieldRead: {
            /** @description The entity. */
            entity: string;
            /** @description The field. */
            field: string;
        };
        /** @description One thing that is not as it should be. */
        Finding: {
            /** @description Its class, such as `commitment`, `position` or `state`; docs/reference/verify.md lists them. */
            damage: string;
            /** @description The entity it concerns, as a reference, where it concerns one. */
            entity: string | null;
            /** @description Whether the log itself is damaged; otherwise only derived data is stale. */
            log: boolean;
            /** @description The first position it concerns, where it concerns one. */
            position: number | null;
            /** @description The problem, in one clause. */
            problem: string;
            /** @description The remedy. */
            remedy: string;
        };
        /** @description The progress of removing erased data from the files. */
        Finished: {
            /** @description The blocking process, if known. */
            blockers: string[];
            /** @description The effects of the erasures behind the search. */
            certificates: components["schemas"]["Certificate"][];
            /** @description The cost of compacting the file, measured or estimated; None if it was not necessary. */
            compaction: components["schemas"]["Compaction"] | null;
            /** @description Whether all files were searched without a match. */
            complete: boolean;
            /** @description Per file, the number of matches of erased bytes. */
            hits: {
                [key: string]: number;
            };
            /** @description True if no file keeps older versions of its contents; otherwise a reader is in the way. */
            purged: boolean;
            /** @description The files that were searched. */
            scanned: string[];
            /** @description Number of searched bytes; None if other tenants' bytes are among them. */
            scanned_bytes: number | null;
            /** @description True if every file was searched afterwards; the search terms are sealed with the erasure key. */
            searched: boolean;
        };
        /** @description A write with which an answer became another. */
        Flip: {
            /** @description The answer before and after. */
            answers: boolean[];
            /** @description The end of the write before: the last moment with the old answer. */
            before: number;
            /** @description The changes of the entities that the question looks at. */
            changes: components["schemas"]["LookedChange"][];
            /** @description The choices of the decision before and after, if the question is a decision. */
            chosen: unknown[] | null;
            /** @description The last position of the write: the first moment with the new answer. */
            position: number;
            /** @description When the log took the write. */
            recorded_at: string;
            /** @description Types whose schema changed with the write: version before and after. */
            schemas: {
                [key: string]: number[];
            };
            /** @description The write's observations of these entities, by position. */
            statements: components["schemas"]["Statement"][];
            /** @description Why nothing can be decided before and after, where a rule is unknown there; `chosen` has null for it. */
            undecided: (string | null)[];
            /** @description The first position of the write. */
            write: number;
        };
        /** @description State of a tenant's log and derived data. */
        Health: {
            /** @description The engine, such as `sqlite`. */
            engine: string;
            /** @description Position of each index; they lag a little. */
            indexes: components["schemas"]["IndexPosition"][];
            /** @description Position of its last entry. */
            position: number;
            /** @description When the last entry was recorded; None in an empty log. */
            recorded_at: string | null;
            /** @description Types whose states or identifying values are being recomputed after a new version of their schema. */
            refolding: components["schemas"]["Waiting"][];
            /** @description The tenant. */
            tenant: string;
            /** @description The server's version. */
            version: string;
        };
        /** @description One entity that a search found. */
        Hit: {
            /** @description Whether the query is its key or an identifying value, but for the case of A to Z and for spaces. */
            exact: boolean;
            /** @description Fields in which any of the query's words begins a word, by name; a hit on the key alone has none. */
            fields: string[];
            /** @description What is believed about it. */
            snapshot: components["schemas"]["Snapshot"];
        };
        /** @description Some items of a list, in order; false when there are none. */
        HitPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Hit"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description What leaned on something: one page of it. Runs come first, then fields, exports and observations. */
        Impact: {
            /** @description How much there is on all pages. */
            counts: components["schemas"]["ImpactCounts"];
            /** @description What to ask with for what follows; none when that was all. */
            cursor: string | null;
            /** @description How many runs away it was to be looked for; none: however many. */
            depth: number | null;
            /** @description The exports with rows of those runs, by position. */
            exports: components["schemas"]["Export"][];
            /** @description The fields that it, and what was written from it, take part in now; the nearest first. */
            fields: components["schemas"]["WonField"][];
            /** @description What was asked about. */
            id: string;
            /** @description `observation`, `source`, `interpretation`, `agent`, `entity`, `run` or `decision`. */
            kind: string;
            /** @description How many runs are one further away than that; more may lie behind them. None as long as for the count of runs. */
            left_out: number | null;
            /** @description How the entity asked about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The observations that what was asked about stands for, by position. */
            observations: string[];
            /** @description The log position it was answered at. */
            position: number;
            /** @description The runs that leaned on it, the nearest first, and of those as near by the entry they were found by. */
            runs: components["schemas"]["AffectedRun"][];
        };
        /** @description How much leaned on something, on all pages together. */
        ImpactCounts: {
            /** @description The decisions of these runs whose evidence it is part of; none as long as for the runs. */
            decisions: number | null;
            /** @description The exports; none on a page before the one that lists the first of them. */
            exports: number | null;
            /** @description The fields; none on a page before the one that lists the last of them. */
            fields: number | null;
            /** @description The observations that what was asked about stands for. */
            observations: number;
            /** @description The runs that leaned on it; none on a page before the one that lists the last of them. */
            runs: number | null;
        };
        /** @description The result of importing a log. */
        Imported: {
            /** @description Whether anything was imported. */
            changed: boolean;
            /** @description Number of entries copied unchanged, with their positions. */
            cloned: number;
            /** @description Number of offered entries. */
            entries: number;
            /** @description Number of entries that were already erased, there or here, and have no content. */
            erased: number;
            /** @description Number of erasures repeated here: those in the log, and those that the keys folder remembers. */
            erasures: number;
            /** @description Number of entries that were here already. */
            known: number;
            /** @description The name that this ledger's log continues under; None if its next write begins a new one. */
            log: string | null;
            /** @description Number of entries merged, as new entries of this log. */
            merged: number;
            /** @description The end of this log afterwards. */
            position: number;
            /** @description Root of its tree, in hex. */
            root: string;
        };
        /** @description How far something that trails the log goes. */
        IndexPosition: {
            /** @description How many entries came since. */
            lacking: number;
            /** @description What it is. */
            name: string;
            /** @description The last position it knows; -1 before its first use. */
            position: number;
        };
        /** @description One reading of a source; `status` is `started` until its end is recorded. */
        Interpretation: {
            /** @description Who read it. */
            agent: string;
            /** @description Other settings of the interpretation. */
            configuration: {
                [key: string]: unknown;
            };
            /** @description When it ended. */
            ended_at: string | null;
            /** @description Why it failed. */
            error: string | null;
            /** @description Which code turned the answer into records. */
            extractor: string | null;
            /** @description A new id: an interpretation is an event, and is not deduplicated. */
            id: string;
            /** @description Which model read it, if one did. */
            model: string | null;
            /** @description Model parameters. */
            parameters: {
                [key: string]: unknown;
            };
            /** @description SHA-256 of the prompt, in hex. */
            prompt: string | null;
            /** @description Id of the source that was read. */
            source: string;
            /** @description Digest of the content read. */
            source_digest: string;
            /** @description When the interpretation began. */
            started_at: string;
            /** @description `started`, `done` or `error`. */
            status: string;
            /** @description Its cost, as the model reported it. */
            usage: {
                [key: string]: unknown;
            };
        };
        /** @description Some items of a list, in order; false when there are none. */
        InterpretationPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Interpretation"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description What somebody thinks of the run, or of one step of it. */
        Judgement: {
            /** @description Span of the step that is judged; the whole run when left out. */
            about: string | null;
            /** @description The tag or run it was compared with. */
            against: string | null;
            /** @description Who recorded the judgement; whoever judged may be somebody else. */
            agent: string | null;
            /** @description What else an import said of it. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description Who judged. */
            by: string | null;
            /** @description The `evaluation` that says so, as a reference. */
            evaluation: string | null;
            /** @description Where the entry stands in the log. */
            position: number;
            /** @description A better answer. */
            preferred: unknown;
            /** @description Why. */
            reason: string | null;
            /** @description The judgement as a number. */
            score: unknown;
            /** @description What tells equal steps apart. */
            span: string;
            /** @description When the step began, fixed-width UTC; none when the entry does not say. */
            started_at: string | null;
            /** @description The recorder's own count of steps. */
            step: number;
            /** @description Span of the tool or model call inside which it happened. */
            under: string | null;
            /** @description `good`, `bad`, or the judge's own word. */
            verdict: string;
        };
        /** @description A key, without its secret. */
        Key: {
            /** @description The agent that its holder writes as. */
            agent: string;
            /** @description When it was made. */
            created_at: string;
            /** @description When it expires. */
            expires_at: string | null;
            /** @description The grants of its holder, sorted. */
            grants: string[];
            /** @description Its id, which is no secret. */
            id: string;
            /** @description Its purpose. */
            name: string | null;
            /** @description The highest priority its holder may state. */
            priority_max: number | null;
            /** @description True if it was revoked. */
            revoked: boolean;
            /** @description The tenant that it opens. */
            tenant: string;
        };
        /** @description The tenant that a key opens, and its agent. */
        KeyOwner: {
            /** @description The agent. */
            agent: string;
            /** @description The tenant. */
            tenant: string;
        };
        /** @description What became of a value after a decision was made on it. */
        LaterChange: {
            /** @description Who said so. */
            agent: string | null;
            /** @description The reason they gave; none where they gave none. */
            because: string | null;
            /** @description `corrected`, `retracted`, `superseded` or `deleted`. */
            change: string;
            /** @description What is believed now; null also where nothing is. */
            now: unknown;
            /** @description The observation that changed it; none where that is not known. */
            observation: string | null;
            /** @description When they saw it. */
            observed_at: string | null;
        };
        /** @description What something comes from, one page of it: its own tree first, then those of the runs that lie behind it. */
        LineageTree: {
            /** @description What to ask with for what follows; none when that was all. */
            cursor: string | null;
            /** @description The runs that lean on one another, once all that could lead back to them was found. */
            cycles: components["schemas"]["Cycle"][];
            /** @description How many runs behind one another were to be followed; none: however many. */
            depth: number | null;
            /** @description What is known of it, as plain JSON. */
            details: {
                [key: string]: unknown;
            };
            /** @description What tells it apart from others of its kind. */
            id: string;
            /** @description What it is: `answer`, `decision`, `stage`, `observation` or `field`. */
            kind: string;
            /** @description What it says, for people. */
            label: string;
            /** @description How many runs lie one further back than that; more may lie behind them. None before the last page. */
            left_out: number | null;
            /** @description How the entity asked about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description What it comes from, each as a tree that ends at the runs behind it. */
            nodes: components["schemas"]["Node"][];
            /** @description The log position it was answered at. */
            position: number;
            /** @description How many such trees there are on all pages; none before the last page. */
            run_count: number | null;
            /** @description The runs behind it, the nearest first, each as a tree: what it had read and decided by then. */
            runs: components["schemas"]["Node"][];
        };
        LoggedEntry: components["schemas"]["Entry"] & {
            /** @description Position of the entry that says its body was erased. */
            erased_at?: number | null;
        };
        /** @description The end of the log at a moment, and leaf hashes of it. */
        LogLeaves: {
            /** @description The format of its entries. */
            format: number;
            /** @description The leaf hash at each requested position, in hex; None if the position has no entry. */
            leaves: (string | null)[];
            /** @description Its name; None while it is empty. */
            log: string | null;
            /** @description Position of its last entry; −1 before the first. */
            position: number;
            /** @description Root of its tree, in hex. */
            root: string;
            /** @description Imported position of the other log; None if it was not imported. */
            taken: components["schemas"]["TakenLog"] | null;
        };
        /** @description The end of the log at a moment. */
        LogPosition: {
            /** @description Position of its last entry; −1 before the first. */
            position: number;
        };
        /** @description One entity before and after the flip, as far as the question looks. */
        LookedChange: {
            /** @description The entity. */
            entity: string;
            /** @description Whether it existed before. */
            existed: boolean;
            /** @description Whether it exists after. */
            exists: boolean;
            /** @description Fields looked at that differ. */
            fields: components["schemas"]["FieldChange"][];
            /** @description Whether it is deleted after. */
            is_deleted: boolean;
            /** @description Whether it was deleted before. */
            was_deleted: boolean;
        };
        /** @description How near a decision was to another choice. */
        Margin: {
            /** @description Whether the search was complete; false where it was cut off, with the reason. */
            complete: boolean;
            /** @description The smallest changes that flip the decision: all of them change the same number of facts. */
            flips: components["schemas"]["MarginFlip"][];
            /** @description How many more such changes there are than are listed. */
            omitted: number;
            /** @description `flips` where a change of facts leads to another choice, `never` where none does, else `unknown`. */
            outcome: string;
            /** @description Why it is unknown, or where the search was cut off. */
            reason: string | null;
            /** @description The smallest changes in a sentence. */
            sentence: string;
            /** @description The sources each of which would flip it if it alone were wrong. */
            sources: components["schemas"]["SoleSource"][];
            /** @description The facts that did not matter: no other value of one of them alone flips it, nor is it part of a smallest change. */
            without_effect: string[];
        };
        /** @description One change that would have led to another choice. */
        MarginFlip: {
            /** @description What would have been chosen. */
            chosen: unknown;
            /** @description The facts that would have had to be otherwise, all of them. */
            facts: components["schemas"]["NeededChange"][];
            /** @description Label of the rule that would have matched, a list of them under `select`; null where none would. */
            rule: unknown;
            /** @description The change in a few words. */
            sentence: string;
        };
        /** @description How a reference or a record was found to mean a known entity. */
        Match: {
            /** @description The reference in the call, or the one that the record would have had on its own. */
            asked: string;
            /** @description The entity it means. */
            entity: string;
            /** @description The identity rule of the common value, such as `email` or `name+company`. */
            rule: string;
        };
        /** @description One call of a model. */
        ModelCall: {
            /** @description What else an import said of it. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description How long it took. */
            duration_ms: (number) | null;
            /** @description How it failed. */
            error: unknown;
            /** @description Whether it failed. */
            errored: boolean;
            /** @description Tokens it read. */
            input_tokens: number;
            /** @description The messages it was given, where the recorder kept them. */
            messages: unknown;
            /** @description Which model. */
            model: string | null;
            /** @description Tokens it wrote. */
            output_tokens: number;
            /** @description How it was asked. */
            parameters: {
                [key: string]: unknown;
            };
            /** @description Where the entry stands in the log. */
            position: number;
            /** @description What it answered as text, cut at a named length: its words and the tools it asked for; none without one. */
            preview: string | null;
            /** @description Digest of the request. */
            request: string | null;
            /** @description Digest of the request, under the name that other formats use. */
            request_digest: string | null;
            /** @description What it answered. */
            response: unknown;
            /** @description What tells equal steps apart. */
            span: string;
            /** @description When the step began, fixed-width UTC; none when the entry does not say. */
            started_at: string | null;
            /** @description The recorder's own count of steps. */
            step: number;
            /** @description Span of the tool or model call inside which it happened. */
            under: string | null;
        };
        /** @description One thing that came near and was not recalled. */
        NearMiss: {
            /** @description When it was said (UTC). */
            at: string | null;
            /** @description `run`, `fact`, `note` or `document`. */
            kind: string;
            /** @description Why it was not recalled. */
            reason: string;
            /** @description What it is. */
            ref: string;
            /** @description How sure it is that this answers the question, 0 to 1. */
            score: number;
            /** @description The passage that came nearest, cut short; of a run, what it was asked. */
            text: string;
        };
        /** @description One fact, and the values it would have needed. */
        NeededChange: {
            /** @description Name of the fact. */
            fact: string;
            /** @description Whether it was missing. */
            missing: boolean;
            /** @description The values that it would have needed: any of these regions, the nearest first. */
            to: components["schemas"]["Region"][];
            /** @description What it was; null also where it was missing. */
            was: unknown;
        };
        /** @description What some writes after a position made stale. */
        Newly: {
            /** @description The decisions, write by write. */
            decisions: components["schemas"]["Stale"][];
            /** @description Everything up to here was looked at. */
            position: number;
        };
        /** @description One thing on the way, and what it comes from. */
        Node: {
            /** @description What is known of it, as plain JSON; `again` where what is behind it was shown, `below` where it follows. */
            details: {
                [key: string]: unknown;
            };
            /** @description What tells it apart from others of its kind. */
            id: string;
            /** @description `answer`, `decision`, `evidence`, `read`, `field`, `observation`, `interpretation`, `source`, and the like. */
            kind: string;
            /** @description What it says, for people. */
            label: string;
            /** @description What it comes from; in an impact, what comes of it. */
            nodes: components["schemas"]["Node"][];
        };
        /** @description A remark the run made. */
        Note: {
            /** @description What else an import said of it. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description What belongs to it. */
            data: unknown;
            /** @description Where the entry stands in the log. */
            position: number;
            /** @description What tells equal steps apart. */
            span: string;
            /** @description When the step began, fixed-width UTC; none when the entry does not say. */
            started_at: string | null;
            /** @description The recorder's own count of steps. */
            step: number;
            /** @description The remark. */
            text: string;
            /** @description Span of the tool or model call inside which it happened. */
            under: string | null;
        };
        /** @description One statement about one entity: the body of its entry, and its id. */
        Observation: {
            /** @description Who says so. */
            agent: string;
            /**
             * @description There if the log set `observed_at`.
             * @constant
             */
            assigned?: true;
            /** @description As far as stated. */
            confidence?: unknown;
            /** @description Its subject. */
            entity: {
                key: string;
                type: string;
            };
            /** @description Field values stated. */
            fields?: Record<string, unknown>;
            /** @description The short name people see. */
            id: string;
            /** @description As far as stated. */
            interpretation?: unknown;
            /** @description As far as stated. */
            locator?: unknown;
            /** @description As far as stated. */
            match?: unknown;
            /** @description When the writer saw it. */
            observed_at: string;
            /**
             * @description What it does.
             * @enum {unknown}
             */
            op: "assert" | "correct" | "delete" | "restore" | "retract";
            /** @description Trust in the writer. */
            priority: number;
            /** @description As far as stated. */
            reason?: unknown;
            /** @description Elements taken out of collections, by field. */
            remove?: Record<string, unknown>;
            /** @description Names of observations it replaces or withdraws. */
            replaces?: string[];
            /** @description As far as stated. */
            run?: unknown;
            /** @description Names of observations the writer had read before. */
            saw?: string[];
            /** @description As far as stated. */
            source?: unknown;
            /** @description As far as stated. */
            step?: unknown;
            /** @description Since when it is true. */
            valid_from: string;
        };
        /** @description The result of writing a set in many orders. */
        OrderProof: {
            /** @description Seeds of the orders that ended in another fingerprint; empty when order does not matter. */
            differing: number[];
            /** @description The fingerprint of the ledger itself. */
            fingerprint: string;
            /** @description Whether every order ended in the same state. */
            holds: boolean;
            /** @description Number of shuffled observations. */
            observations: number;
            /** @description Number of tried orders. */
            shuffles: number;
        };
        /** @description Where the value of one field came from. */
        Origin: {
            /** @description Who said so. */
            agent: string;
            /** @description The reason of the correction in effect on the field; None without one. */
            because: string | null;
            /** @description Whether the value, or an element of it, was decided only by arrival: no observation time was given. */
            by_arrival: boolean;
            /** @description Number of live claims on the field. */
            claims: number;
            /** @description Whether a correction is in effect on the field. */
            corrected: boolean;
            /** @description Number of other live claims that do not fit the schema or the policy. */
            misfits: number;
            /** @description The observation that set the value; for a collection or a sum, the latest one. */
            observation: string;
            /** @description All observations that set the value, by digest; for a sum only the one shown. */
            observations: string[];
            /** @description When they saw it. */
            observed_at: string;
            /** @description The merge policy that chose it. */
            policy: string;
            /** @description The priority they claimed. */
            priority: number;
        };
        /** @description How far the log goes and how it has grown. */
        Overview: {
            /** @description The last signed checkpoint, which the log must extend; none without keys, or before the first was signed. */
            checkpoint: components["schemas"]["Checkpoint"] | null;
            /** @description How it has grown, day by day in UTC, up to and including today. */
            days: components["schemas"]["DayCount"][];
            /** @description Position of the last entry; −1 before the first. */
            position: number;
            /** @description When that was recorded; none before the first entry. */
            recorded_at: string | null;
        };
        /** @description A question about state; it holds when everything it asks is so. */
        Predicate: {
            /** @description The decision that must choose a branch, if one is asked about. */
            decision: components["schemas"]["Choice"] | null;
            /** @description Conditions on entities, each once. */
            entities: components["schemas"]["EntityConditions"][];
        };
        Problem: {
            /** @enum {string} */
            code: "refused" | "forbidden" | "not_found" | "outdated" | "unavailable" | "corrupt";
            detail: string;
            details: Record<string, unknown>;
            instance: string;
            status: number;
            title: string;
            type: string;
        };
        /** @description Neighbouring values of a sweep that come to the same. */
        Range: {
            /** @description The first of them. */
            first: unknown;
            /** @description The last of them. */
            last: unknown;
            /** @description The outcome of the decision at each of them. */
            now: components["schemas"]["DecisionNow"];
            /** @description The outcome of the decision there, in a few words. */
            sentence: string;
            /** @description How many they are. */
            values: number;
        };
        /** @description What the run read of one entity. */
        Read: {
            /** @description What that verb was asked. */
            args: {
                [key: string]: unknown;
            };
            /** @description The position it read at. */
            as_of: number | null;
            /** @description What else an import said of it. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description The effective time it asked for. */
            effective: string | null;
            /** @description The entity, as a reference; none for a search that found none. */
            entity: string | null;
            /** @description By field the winning observation and what it showed: `{"observation", "value"}`, of several `observations`. */
            fields: {
                [key: string]: unknown;
            };
            /** @description Whether anything was known of the entity. */
            found: boolean;
            /** @description Name of the log it read. */
            log: string | null;
            /** @description Where the entry stands in the log. */
            position: number;
            /** @description Whether it asked for the present, rather than for a moment. */
            present: boolean;
            /** @description Of a recall, the runs it found, best first. */
            recalled: components["schemas"]["RecalledRun"][];
            /** @description What tells equal steps apart. */
            span: string;
            /** @description When the step began, fixed-width UTC; none when the entry does not say. */
            started_at: string | null;
            /** @description The recorder's own count of steps. */
            step: number;
            /** @description Why nobody compared it with the log: it is by `valid_at`, names no `position`, shows what was `erased`, or is of another `log`, which only `runs show` looks up; none where the log bears it out. */
            unchecked: string | null;
            /** @description Span of the tool or model call inside which it happened. */
            under: string | null;
            /** @description The verb that read, unless that was `show`. */
            within: string | null;
        };
        /** @description How two readings differ: in how they were made, and in what they said. */
        ReadingsDiff: {
            /** @description Id of the second. */
            after: string;
            /** @description Id of the first reading. */
            before: string;
            /** @description What they said differently, by entity: `added` is said by the second alone, `removed` by the first alone. */
            entities: components["schemas"]["EntityChange"][];
            /** @description How they were made and how they ended, as far as that differs; such as `model` or `parameters.temperature`. */
            settings: components["schemas"]["FieldChange"][];
        };
        /** @description One decision about a subject, with the run it was made in and what that run answered. */
        Reason: {
            /** @description Who decided. */
            agent: string | null;
            /** @description What the run answered. */
            answer: unknown;
            /** @description Which conversation the run is part of. */
            conversation: string | null;
            /** @description When it was made. */
            decided_at: string | null;
            /** @description What was decided, by which rule and on what evidence. */
            decision: components["schemas"]["Decision"];
            /** @description Where the decision stands in the log. */
            position: number;
            /** @description On whose behalf. */
            principal: string | null;
            /** @description What was asked. */
            query: string | null;
            /** @description The run. */
            run: string;
            /** @description How the run stands. */
            status: string;
            /** @description The entity the run is about; another one when its evidence was read from the entity asked about. */
            subject: string | null;
            /** @description What was thought of it. */
            verdict: string | null;
        };
        /** @description Some items of a list, in order; false when there are none. */
        ReasonPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Reason"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description What a rebuild made, and what it found wrong. */
        Rebuilt: {
            /** @description Whether everything kept was what the log says. */
            agreed: boolean;
            /** @description Entities they speak of. */
            entities: number;
            /** @description Entries of the log. */
            entries: number;
            /** @description One digest of the whole state, from the log alone. */
            fingerprint: string;
            /** @description Observations among them. */
            observations: number;
            /** @description The position everything derived is true for. */
            position: number;
            /** @description Entities whose kept state disagreed with the log, as references, sorted; it agrees now. */
            repaired: string[];
        };
        /** @description The answer to a recall; false when nothing passed. */
        Recall: {
            /** @description Id of the embedder with its version; `none` where words alone were compared. */
            embedder: string;
            /** @description Whether anything passed. */
            found: boolean;
            /** @description What was recalled, by score; a question about a decision comes after the decision. */
            hits: components["schemas"]["Recalled"][];
            /** @description The same as a block for a prompt, which marks it as data; empty when there are none. */
            inject: string;
            /** @description How many entries up to the moment asked at are not indexed yet, by their words or by meaning; the remark says what that means. */
            lacking?: number;
            /** @description The position it was asked at. */
            position: number;
            /** @description The projection. */
            projection: string;
            /** @description What was asked. */
            question: string;
            /** @description The nearest of what was not, when less was found than wanted; follow-up questions last. */
            rejected: components["schemas"]["NearMiss"][];
            /** @description What to know about the answer: why it is empty, what an extra would add, what was not compared by meaning. */
            remark: string | null;
            /** @description Among whose memories it looked. */
            scope: string;
            /** @description The hits under the projection asked for; empty when there are none. */
            text: string;
            /** @description The least score. */
            threshold: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
            /** @description How the question's words about time were understood; none where it has none. */
            understood: components["schemas"]["TimeWords"] | null;
        };
        /** @description One thing that a recall found: a run, what is believed of an entity, a note, or a piece of a document. */
        Recalled: {
            /** @description Who said so. */
            agent: string | null;
            /** @description When it was said (UTC). */
            at: string | null;
            /** @description Whether anybody confirmed it. */
            confirmed: boolean;
            /** @description Who else said the same, corrected it to this, or judged the run good; empty where nobody did. */
            confirmed_by: string[];
            /** @description `run`, `fact`, `note` or `document`. */
            kind: string;
            /** @description What it rests on: observations, the run, or the source. */
            lineage: string[];
            /** @description Which passage came nearest: of a run `asked`, `decided` or `answered`, else the kind. */
            passage: string;
            /** @description The entry it comes from. */
            position: number;
            /** @description With which priority; none for runs and documents, which state none. */
            priority: number | null;
            /** @description Of a run, what the log holds about it as of the moment asked at. */
            record: components["schemas"]["RunRecord"] | null;
            /** @description What it is: a run's id, an entity's reference, or a source's id with the number of the piece. */
            ref: string;
            /** @description The run, of a run; of a fact or a note the run it was written in. */
            run: string | null;
            /** @description How sure it is that this answers the question, 0 to 1. */
            score: number;
            /** @description What it says, as one line that nothing in it can break out of. */
            text: string;
        };
        /** @description A run that another one recalled. */
        RecalledRun: {
            /** @description Position of the entry that says so. */
            at: number;
            /** @description What of it came near: `asked`, `decided` or `answered`. */
            passage: string;
            /** @description The run. */
            run: string;
            /** @description How near it came to the question. */
            score: number;
        };
        /** @description One statement about one entity; every plain key is a field. */
        Record: {
            $?: components["schemas"]["ClaimMetadata"];
            /** @description type of the entity */
            entity_type: string;
        } & {
            [key: string]: unknown;
        };
        /** @description Entries of a run, as received. */
        RecordedEntries: {
            /** @description Number of new entries. */
            recorded: number;
            /** @description The run. */
            run: string;
        };
        /** @description A step of a run, and its outcome. */
        RecordedStep: {
            /** @description The answer of another reading verb. */
            found: unknown;
            /** @description True if an earlier call with the same key recorded it. */
            repeated: boolean;
            /** @description The report of the write. */
            report: unknown;
            /** @description The run. */
            run: string;
            /** @description The snapshot that `show` read. */
            snapshot: unknown;
            /** @description The decision. */
            verdict: unknown;
        };
        /** @description A 1-minimal set of observations that shows a predicate, with all that is needed to fold it elsewhere. */
        Reduction: {
            /** @description The state of the entities in question under the set alone, by reference: the fields in question. */
            believed: {
                [key: string]: {
                    [key: string]: unknown;
                };
            };
            /** @description The fingerprint of a ledger that holds this set and nothing else. */
            fingerprint: string;
            /** @description How many sets were folded to find it; not part of the file. */
            folds: number;
            /** @description How entities were found that were asked about by values that identify them; not part of the file. */
            matched?: components["schemas"]["Match"][];
            /** @description The observations; leaving out any one of them loses it. */
            members: components["schemas"]["Observation"][];
            /** @description Where it was made. */
            origin: components["schemas"]["ReductionOrigin"];
            /** @description The predicate that it shows. */
            predicate: components["schemas"]["Predicate"];
            /** @description The result that it shows, in words. */
            question: string;
            /** @description The schemas they are merged under, by type; types without one have none. */
            schemas: components["schemas"]["Schema"][];
            /** @description The result, in a sentence. */
            sentence: string;
        };
        /** @description Where a reduction was made. */
        ReductionOrigin: {
            /** @description Name of the log; none of an empty one. */
            log: string | null;
            /** @description How many observations were there to choose from. */
            observations: number;
            /** @description The position that was read at. */
            position: number;
            /** @description The effective time of the question; None if all known observations count. */
            valid_at: string | null;
        };
        /** @description Values of one fact: those of a kind that satisfy all conditions. */
        Region: {
            /** @description What must hold, by the operators of rules, such as `{"gte": 600}`; empty where any value of the kind will do. */
            conditions: {
                [key: string]: unknown;
            };
            /** @description `number`, `text`, `other` (neither of them), or `missing` (no value at all). */
            kind: string;
            /** @description Patterns that must be found in it. */
            matches: string[];
            /** @description Patterns that must not be found in it. */
            matches_none: string[];
        };
        /** @description What a reindex made. */
        Reindexed: {
            /** @description How many components its vectors have. */
            dimension: number;
            /** @description Id of the embedder. */
            embedder: string;
            /** @description Passages that were embedded. */
            passages: number;
            /** @description The position the vectors are true for. */
            position: number;
            /** @description Runs that have passages. */
            runs: number;
        };
        /** @description One relation found from an entity. */
        Related: {
            /** @description How many relations lie between the entity asked about and this one, itself included. */
            depth: number;
            /** @description Where it leads. */
            end: string;
            /** @description What is said about the relation. */
            fields: {
                [key: string]: unknown;
            };
            /** @description The entity that stands for the relation. */
            relation: string;
            /** @description Where it begins. */
            start: string;
            /** @description Its type. */
            type: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        RelatedPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Related"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A webhook that was removed. */
        RemovedWebhook: {
            /** @description Its id. */
            removed: string;
        };
        /** @description What a write did; never changed once made. What a caller may not look at is worked out when they do. */
        Report: {
            /** @description Fields the write speaks of that are decided only by arrival now, as `type/key#field`: no time was given. */
            by_arrival: string[];
            /** @description What changed, by entity. */
            changes: components["schemas"]["Change"][];
            /** @description Fields that are in conflict now and were not before, as `type/key#field`. */
            conflicts: string[];
            /** @description Whether nothing was written because the caller asked for that. */
            dry_run: boolean;
            /** @description Entities spoken of, as references, in the order stated. */
            entities: string[];
            /** @description What the caller may want to know, as sentences. */
            hints: string[];
            /** @description Id of the source, schema or interpretation the write made or found, where it did. */
            id: string | null;
            /** @description Those of them that the log already held. */
            known: string[];
            /** @description Records that were attached to known entities, and how each was found; JSON has it only where there are any. */
            matched?: components["schemas"]["Match"][];
            /** @description Ids of the observations stated, new or known, in the order stated. */
            observations: string[];
            /** @description The log's position after the write: reading as of it shows the write. */
            position: number;
            /** @description Positions of the entries written; empty when there was nothing new to say. */
            positions: number[];
            /** @description Whether this is the answer of an earlier call, given again; nothing was written now. */
            repeated: boolean;
            /** @description What times that were said in words turned out to be, by argument; JSON has it only where there are any. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A run that its caller continues. */
        ResumedRun: {
            /** @description The time of its last entry. */
            resumed_at: string | null;
            /** @description The run. */
            run: string;
            /** @description The entries of the run, then those of each child run. */
            runs: unknown[][];
        };
        /** @description A webhook whose failed deliveries are to be retried. */
        RetriedWebhook: {
            /** @description Number of deliveries. */
            retried: number;
            /** @description Its id. */
            webhook: string;
        };
        Rule: Record<string, unknown>;
        /** @description What a run decided at one stage. */
        RunChoice: {
            /** @description The branch taken, a list under `select`; a preview of one that is long. */
            chosen: unknown;
            /** @description What was decided. */
            stage: string;
        };
        /** @description What the log holds about one execution of an agent. */
        RunRecord: {
            /** @description Who ran: the owner of the run, who recorded all of it. */
            agent: string | null;
            /** @description What it answered. */
            answer: unknown;
            /** @description What else an import said. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description The end of the log when it began: `{"log", "position"}`. */
            basis: {
                [key: string]: unknown;
            } | null;
            /** @description Version of the agent's code. */
            code: string | null;
            /** @description Which conversation it is part of. */
            conversation: string | null;
            /** @description What it decided, in order. */
            decisions: components["schemas"]["Decision"][];
            /** @description How long it took. */
            duration_ms: (number) | null;
            /** @description Position of the entry it ended with; none when there is none. */
            end: number | null;
            /** @description When it ended. */
            ended_at: string | null;
            /** @description Those of them whose bodies were erased. */
            erased: number[];
            /** @description What ended it, where that was an error. */
            error: unknown;
            /** @description Where entries and observations of other agents stand that name the run; they are no part of it. */
            foreign: number[];
            /** @description The run and step it is a fork of, and the edit: `{"run", "step", "span", "what", "set", "was"}`. */
            forked_from: {
                [key: string]: unknown;
            } | null;
            /** @description The run. */
            id: string;
            /** @description Tokens its models read. */
            input_tokens: number;
            /** @description What it was given. */
            inputs: {
                [key: string]: unknown;
            };
            /** @description How often it asked a model. */
            iterations: number;
            /** @description What was thought of it, in order. */
            judgements: components["schemas"]["Judgement"][];
            /** @description Other runs of the same trace, sorted. */
            linked: string[];
            /** @description The models it called, in order. */
            models: components["schemas"]["ModelCall"][];
            /** @description What agents inside call themselves, sorted, where whoever recorded the run was trusted to say so. */
            names: string[];
            /** @description What happened, told from the log: the same bytes every time. */
            narrative: string;
            /** @description What its recorder says at its end: what could not be recorded, and which facts rules did not get. */
            noted_problems: string[];
            /** @description Its remarks, in order. */
            notes: components["schemas"]["Note"][];
            /** @description Tokens its models wrote. */
            output_tokens: number;
            /** @description The step of another run that started it: `{"run", "span"}`. */
            parent: {
                [key: string]: unknown;
            } | null;
            /** @description The pipeline it is a step of, as a reference. */
            pipeline: string | null;
            /** @description Where its entries stand in the log. */
            positions: number[];
            /** @description Whether its results and responses are previews: it was imported as a snapshot, which has no more. */
            previews_only: boolean;
            /** @description On whose behalf. */
            principal: string | null;
            /** @description What could not be recorded, and which facts rules asked for and did not get, each once. */
            problems: string[];
            /** @description What was asked. */
            query: string | null;
            /** @description What it read, in order. */
            reads: components["schemas"]["Read"][];
            /** @description Whether it answers from memory. */
            recall: boolean;
            /** @description The session it is part of, as a reference. */
            session: string | null;
            /** @description Position of the entry it began with; none when that is missing. */
            start: number | null;
            /** @description When it began; the time of the first step when no beginning is known. */
            started_at: string | null;
            /** @description `done`, `error`, `cancelled`, `interrupted` or `running`. */
            status: string;
            /** @description The entity it is about, as a reference. */
            subject: string | null;
            /** @description The tools it called, in order. */
            tool_calls: components["schemas"]["ToolCall"][];
            /** @description The W3C traceparent it was started with, where that names no run of this log; of a run that came as spans, the id of their trace. */
            trace: string | null;
            /** @description Versions in force: runbooks, tool configurations; the pipeline and the session it is part of. */
            using: {
                [key: string]: unknown;
            };
            /** @description What its judges think of the whole run: their one word, `mixed` when they differ, nothing without any. */
            verdict: string | null;
            /** @description The observations it said, by position; first those in the log that it was imported from. */
            writes: components["schemas"]["Write"][];
        };
        /** @description One step of a run; of what happened in it, the one field that its kind names is set. */
        RunStep: {
            /** @description Which of several agents took it, where that is recorded. */
            agent: string | null;
            /** @description What was decided. */
            decision: components["schemas"]["Decision"] | null;
            /** @description Inside how many calls it happened. */
            depth: number;
            /** @description Number of the call inside which it happened. */
            inside: number | null;
            /** @description `read`, `tool`, `model`, `decision`, `note` or `write`. */
            kind: string;
            /** @description The model that was called. */
            model: components["schemas"]["ModelCall"] | null;
            /** @description What was remarked. */
            note: components["schemas"]["Note"] | null;
            /** @description What the step is called by, in `runs show --step` and in a fork. */
            number: number;
            /** @description What was read. */
            read: components["schemas"]["Read"] | null;
            /** @description The tool that was called. */
            tool: components["schemas"]["ToolCall"] | null;
            /** @description What was written, all of it in one step. */
            writes: components["schemas"]["Write"][];
        };
        /** @description Some steps of a run, in order, and what is said of the run as a whole. */
        RunSteps: {
            /** @description What it answered, in full. */
            answer: unknown;
            /** @description The end of the log when it began: `{"log", "position"}`. */
            basis: {
                [key: string]: unknown;
            } | null;
            /** @description Version of the agent's code. */
            code: string | null;
            /** @description Position of the entry it ended with; none when there is none. */
            end: number | null;
            /** @description How many of its entries were erased. */
            erased: number;
            /** @description What ended it, where that was an error, in full. */
            error: unknown;
            /** @description The run and step it is a fork of, and the edit: `{"run", "step", "span", "what", "set", "was"}`. */
            forked_from: {
                [key: string]: unknown;
            } | null;
            /** @description What it was given. */
            inputs: {
                [key: string]: unknown;
            };
            /** @description The steps of this page. */
            items: components["schemas"]["RunStep"][];
            /** @description What was thought of it, in order. */
            judgements: components["schemas"]["Judgement"][];
            /** @description What could not be recorded, and which facts rules asked for and did not get, each once. */
            problems: string[];
            /** @description What was asked, in full. */
            query: string | null;
            /** @description The run in short. */
            run: components["schemas"]["RunSummary"];
            /** @description How many of them stand before those of this page. */
            skipped: number;
            /** @description Position of the entry it began with; none when that is missing. */
            start: number | null;
            /** @description How many steps it has; of the kind that was asked for, where one was. */
            total: number;
        };
        /** @description One run of a list; `runs.show` has all of it. */
        RunSummary: {
            /** @description Who ran: the owner of the run, who recorded all of it. */
            agent: string | null;
            /** @description What it answered; a preview where `cut` says so. */
            answer: unknown;
            /** @description What it decided, in order; the first of them where there are many. */
            choices: components["schemas"]["RunChoice"][];
            /** @description Which conversation it is part of. */
            conversation: string | null;
            /** @description How many steps it has. */
            counts: components["schemas"]["StepCounts"];
            /** @description Which of `query`, `answer` and `error` are longer than what is shown here. */
            cut: string[];
            /** @description How long it took. */
            duration_ms: (number) | null;
            /** @description When it ended. */
            ended_at: string | null;
            /** @description What ended it, where that was an error; a preview where `cut` says so. */
            error: unknown;
            /** @description The run and step it is a fork of: `{"run", "step"}`. */
            forked_from: {
                [key: string]: unknown;
            } | null;
            /** @description The run. */
            id: string;
            /** @description Tokens its models read. */
            input_tokens: number;
            /** @description What agents inside call themselves, sorted. */
            names: string[];
            /** @description Tokens its models wrote. */
            output_tokens: number;
            /** @description The step of another run that started it: `{"run", "span"}`. */
            parent: {
                [key: string]: unknown;
            } | null;
            /** @description The pipeline it is a step of, as a reference. */
            pipeline: string | null;
            /** @description On whose behalf. */
            principal: string | null;
            /** @description What was asked; a preview where `cut` says so. */
            query: string | null;
            /** @description The session it is part of, as a reference. */
            session: string | null;
            /** @description When it began; the time of the first step when no beginning is known. */
            started_at: string | null;
            /** @description `done`, `error`, `cancelled`, `interrupted` or `running`. */
            status: string;
            /** @description The entity it is about, as a reference. */
            subject: string | null;
            /** @description What its judges think of the whole run. */
            verdict: string | null;
        };
        /** @description Some items of a list, in order; false when there are none. */
        RunSummaryPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["RunSummary"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A run as text. */
        RunText: {
            /** @description The projection: decisions, commits, narrative or full. */
            projection: string;
            /** @description The run. */
            run: string;
            /** @description The text. */
            text: string;
            /** @description Estimated number of tokens. */
            tokens: number;
        };
        /** @description The schema of one entity type, at one version. */
        Schema: {
            /** @description The short name people see. */
            id: string;
            /** @description Why nothing fits it; null for nearly every schema. */
            problem: string | null;
            /** @description The JSON Schema, with `x-woodrat-version` filled in. */
            schema: {
                [key: string]: unknown;
            };
            /** @description The entity type it describes. */
            type: string;
            /** @description The stated version; 0 for a type without a schema. */
            version: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        SchemaPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Schema"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description What separates the bad runs of a group from the good ones. */
        Separation: {
            /** @description How many are bad. */
            bad: number;
            /** @description How many different features were compared. */
            compared: number;
            /** @description Whether every feature was compared; false where there were more than can be followed. */
            complete: boolean;
            /** @description The first step at which a bad run can be told apart; 0 before the first, none where nothing separates them. */
            earliest_step: number | null;
            /** @description How many runs are good. */
            good: number;
            /** @description Where nothing separates them, what comes closest; chance alone could do it. */
            hints: components["schemas"]["Trait"][];
            /** @description All of it in a few plain sentences. */
            sentence: string;
            /** @description Where the verdicts come from: `judges`, `reward` or `status`. */
            sources: string[];
            /** @description What separates them, each with its share, that of the most bad runs first; none where chance explains it all. */
            traits: components["schemas"]["Trait"][];
            /** @description How many bad runs have none of these traits. */
            unexplained: number;
            /** @description How many are neither, and take no part. */
            unjudged: number;
        };
        /** @description A value that differs because every run makes it up anew, and that neither run used. */
        SetAside: {
            /** @description What the first run has there. */
            first: unknown;
            /** @description `random id`, `time` or `duration`. */
            kind: string;
            /** @description Where it stands: `args`, `result`, `messages`, `inputs` or `fields`, and the path within. */
            path: string;
            /** @description What the second run has there. */
            second: unknown;
            /** @description The row it stands in; 0 is the start. */
            step: number;
        };
        /** @description A checkpoint and the note that carries it. */
        Signed: {
            /** @description What it says. */
            checkpoint: components["schemas"]["Checkpoint"];
            /** @description True if it was signed now; otherwise no entry was added since the last one. */
            new: boolean;
            /** @description The signed note, to be handed out byte for byte. */
            note: string;
        };
        /** @description The state of one entity at one moment. */
        Snapshot: {
            /** @description Where each value came from. */
            blame: {
                [key: string]: components["schemas"]["Origin"];
            };
            /** @description The fields in conflict, by name. */
            conflicts: components["schemas"]["Conflict"][];
            /** @description Whether it is deleted; it then shows no fields. */
            deleted: boolean;
            /** @description Digest of the values alone: equal digests are equal states. */
            digest: string;
            /** @description The entity asked about. */
            entity: string;
            /** @description Its id. */
            entity_id: string;
            /** @description Its type. */
            entity_type: string;
            /** @description The value of each field; of a large collection the first elements. */
            fields: {
                [key: string]: unknown;
            };
            /** @description How the entity was found, where that was by a value that identifies it; else it is not there. */
            matched?: components["schemas"]["Match"];
            /** @description All entities folded into it; itself alone unless joined by `same_as`. */
            members: string[];
            /** @description Sizes of collections cut to their first elements. */
            more: {
                [key: string]: number;
            };
            /** @description The log position it was read at. */
            position: number;
            /** @description Why it shows no field although some were stated. */
            problem: string | null;
            /** @description Full name of the schema it was merged under; null for a type without one. */
            schema: string | null;
            /** @description Position of the last entry that touched it: what `if_version` compares. */
            version: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        SnapshotPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Snapshot"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A source that would flip the decision if it alone were wrong. */
        SoleSource: {
            /** @description What could have been chosen instead. */
            chosen: unknown;
            /** @description The facts that came from it and would have to be otherwise. */
            facts: string[];
            /** @description The source. */
            source: components["schemas"]["FactSource"];
        };
        /** @description A source with its content, as text where it is UTF-8. */
        SourceContent: {
            /** @description The content, where it is no text. */
            base64: string | null;
            /** @description Its length. */
            bytes: number;
            /** @description Its deliveries: agent, time and name of each. */
            deliveries: components["schemas"]["Delivery"][];
            /** @description Its id. */
            source: string;
            /** @description The content; None if it is not text. */
            text: string | null;
        };
        /** @description What a run chose at one stage. */
        StageChoice: {
            /** @description What was chosen. */
            chosen: unknown;
            /** @description The stage. */
            stage: string;
        };
        /** @description A decision whose evidence is believed otherwise now. */
        Stale: {
            /** @description Who decided. */
            agent: string | null;
            /** @description What the run answered. */
            answer: unknown;
            /** @description What is believed otherwise now, both beliefs side by side. */
            beliefs: components["schemas"]["Belief"][];
            /** @description What was decided, by which rule and on what evidence. */
            decision: components["schemas"]["Decision"];
            /** @description What would be decided now. */
            now: components["schemas"]["DecisionNow"];
            /** @description `flip`, `same` or `unknown`. */
            outcome: string;
            /** @description What was asked. */
            query: string | null;
            /** @description The run it was made in. */
            run: string;
            /** @description What would come of the decision now, in a few words. */
            sentence: string;
            /** @description The entity the run is about. */
            subject: string | null;
        };
        /** @description Some items of a list, in order; false when there are none. */
        StalePage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Stale"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A reading of a source that was started. */
        StartedReading: {
            /** @description Its id. */
            interpretation: string;
            /** @description The source. */
            source: string;
        };
        /** @description A run that was started. */
        StartedRun: {
            /** @description The log position of its first reads. */
            basis: number | null;
            /** @description The log that records it; None if its start is the first entry. */
            log: string | null;
            /** @description True if an earlier call with the same key started it. */
            repeated: boolean;
            /** @description Its id. */
            run: string;
            /** @description The id of its span. */
            span: string | null;
            /** @description When it started. */
            started_at: string | null;
        };
        /** @description An observation as a log holds it. */
        Statement: {
            /** @description Who said so. */
            agent: string;
            /** @description Whom it speaks of, as a reference. */
            entity: string;
            /** @description The values stated. */
            fields: {
                [key: string]: unknown;
            };
            /** @description `first` or `second` where runs of two ledgers are compared. */
            ledger: string | null;
            /** @description Name of the log that holds it. */
            log: string | null;
            /** @description Its id. */
            observation: string;
            /** @description `assert`, `correct`, `retract`, `delete` or `restore`. */
            op: string;
            /** @description Where it stands in the log. */
            position: number;
            /** @description When the log took it. */
            recorded_at: string | null;
            /** @description Ids of the observations it names: those a retraction withdraws. */
            replaces: string[];
            /** @description The run it was said in. */
            run: string | null;
            /** @description Id of the source it names. */
            source: string | null;
            /** @description What the source was called when it was first delivered. */
            source_name: string | null;
        };
        /** @description Something that an erasure leaves, and why. */
        Stays: {
            /** @description Its name. */
            what: string;
            /** @description The reason why it stays, and the information it reveals. */
            why: string;
        };
        /** @description One observation and its changes. */
        Step: {
            /** @description Fields it changed, before and after; empty when it lost or was late. */
            changes: components["schemas"]["FieldChange"][];
            /** @description Whether the entity was deleted after it. */
            deleted: boolean;
            /** @description What was said. */
            observation: components["schemas"]["Observation"];
            /** @description Its position in the log. */
            position: number;
        };
        /** @description How many steps a run has, by kind. */
        StepCounts: {
            /** @description What it decided. */
            decisions: number;
            /** @description The models it called. */
            models: number;
            /** @description What it read. */
            reads: number;
            /** @description The tools it called. */
            tool_calls: number;
        };
        /** @description Some items of a list, in order; false when there are none. */
        StepPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Step"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description One step of both runs, or of one of them. */
        StepPair: {
            /** @description Why it differs, where that is a cause of its own. */
            cause: components["schemas"]["Cause"] | null;
            /** @description What the first run did, in short; none where it has no such step. */
            first: string | null;
            /** @description The row it follows from, where it differs because that does. */
            follows: number | null;
            /** @description `start`, `read`, `tool`, `model`, `decision`, `write` or `answer`. */
            kind: string;
            /** @description What it is called. */
            label: string;
            /** @description At which level it differs: `none`, `wording`, `behaviour` or `outcome`. */
            level: string;
            /** @description `same`, `differs`, or `first` or `second` for a step of that run alone. */
            mark: string;
            /** @description Where the entries stand, each in its own log. */
            positions: (number | null)[];
            /** @description What the second run did. */
            second: string | null;
            /** @description Its place: 0 is the start, then the steps, and the answer last. */
            step: number;
        };
        /** @description An observation and its place in the log. */
        Stored: {
            /** @description Who says so. */
            agent: string;
            /**
             * @description There if the log set `observed_at`.
             * @constant
             */
            assigned?: true;
            /** @description As far as stated. */
            confidence?: unknown;
            /** @description Its subject. */
            entity: {
                key: string;
                type: string;
            };
            /** @description Field values stated. */
            fields?: Record<string, unknown>;
            /** @description The short name people see. */
            id: string;
            /** @description As far as stated. */
            interpretation?: unknown;
            /** @description As far as stated. */
            locator?: unknown;
            /** @description As far as stated. */
            match?: unknown;
            /** @description When the writer saw it. */
            observed_at: string;
            /**
             * @description What it does.
             * @enum {unknown}
             */
            op: "assert" | "correct" | "delete" | "restore" | "retract";
            /** @description Its position in the log. */
            position: number;
            /** @description Trust in the writer. */
            priority: number;
            /** @description As far as stated. */
            reason?: unknown;
            /** @description Elements taken out of collections, by field. */
            remove?: Record<string, unknown>;
            /** @description Names of observations it replaces or withdraws. */
            replaces?: string[];
            /** @description As far as stated. */
            run?: unknown;
            /** @description Names of observations the writer had read before. */
            saw?: string[];
            /** @description As far as stated. */
            source?: unknown;
            /** @description As far as stated. */
            step?: unknown;
            /** @description Since when it is true. */
            valid_from: string;
        };
        /** @description Some items of a list, in order; false when there are none. */
        StoredPage: {
            /** @description What to ask with for the items that follow; `None` when there are none. */
            cursor: string | null;
            /** @description The items of this page. */
            items: components["schemas"]["Stored"][];
            /** @description How the entity that the list is about was found, where that was by a value that identifies it. */
            matched?: components["schemas"]["Match"] | null;
            /** @description The log position it was read at; that of the first page. */
            position: number;
            /** @description What times that were asked for in words turned out to be, by argument. */
            times?: {
                [key: string]: string;
            };
        };
        /** @description A recorded decision, and its outcome under the supposition. */
        Supposed: {
            /** @description Who decided. */
            agent: string | null;
            /** @description Its changed facts; in a sweep, without the swept one. */
            changes: components["schemas"]["FactChange"][];
            /** @description The recorded choice, with its rule and evidence. */
            decision: components["schemas"]["Decision"];
            /** @description The supposed choice; in a sweep, whether it differs anywhere. */
            now: components["schemas"]["DecisionNow"];
            /** @description `same`, `flip` or `unknown`. */
            outcome: string;
            /** @description In a sweep: the choices with their values. */
            ranges: components["schemas"]["Range"][];
            /** @description The run it was made in. */
            run: string;
            /** @description The outcome, in a few words. */
            sentence: string;
            /** @description The entity the run is about. */
            subject: string | null;
        };
        /** @description All that is supposed at once, checked for its form. */
        Supposition: {
            /** @description Other values of facts, by the name that decisions give them. */
            facts: {
                [key: string]: unknown;
            };
            /** @description Other values of fields, by `REF#field`, as if a correction had always stood there. */
            fields: {
                [key: string]: unknown;
            };
            /** @description Other rules, by stage. */
            rules: {
                [key: string]: components["schemas"]["Rule"][];
            };
            /** @description The values to try. */
            sweep: components["schemas"]["Sweep"] | null;
            /** @description Other operands of recorded rules, by `stage.fact.operator`. */
            thresholds: {
                [key: string]: unknown;
            };
            /** @description Observations, sources and interpretations that were never there, by id. */
            without: string[];
            /** @description Agents who never said anything. */
            without_agents: string[];
        };
        /** @description One value after the other, supposed of one fact or field. */
        Sweep: {
            /** @description The fact, or the field as `REF#field`. */
            name: string;
            /** @description The values, in the order they are tried. */
            values: unknown[];
        };
        /** @description The outcomes of all decisions at one value of a sweep. */
        SweepRow: {
            /** @description Number of decisions per choice, in the order of the whole table. */
            choices: components["schemas"]["ChoiceCount"][];
            /** @description How many would come out differently. */
            flip: number;
            /** @description How many would come out as recorded. */
            same: number;
            /** @description Of how many that is not known. */
            unknown: number;
            /** @description The value. */
            value: unknown;
        };
        /** @description How much of another log was imported. */
        TakenLog: {
            /** @description The leaf hash there, in hex. */
            leaf: string;
            /** @description Its last imported position. */
            position: number;
        };
        /** @description What a question says about when, and how it was understood. */
        TimeWords: {
            /** @description Where they end. */
            end: number;
            /** @description Whether they are counted from the present, as `last Monday`; `in March 2025` is not, and may be part of what is asked about instead. */
            relative: boolean;
            /** @description The first instant that they mean (UTC). */
            since: string;
            /** @description Where in the question they begin. */
            start: number;
            /** @description The first instant after what they mean (UTC). */
            until: string;
            /** @description The words of the question. */
            words: string;
        };
        /** @description One call of a tool. */
        ToolCall: {
            /** @description What it was given. */
            args: unknown;
            /** @description What else an import said of it. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description Whether only its beginning is recorded, so that nobody knows what came of it. */
            begun: boolean;
            /** @description How long it took. */
            duration_ms: (number) | null;
            /** @description How it failed. */
            error: unknown;
            /** @description Whether it failed. */
            errored: boolean;
            /** @description The tool. */
            name: string;
            /** @description Whether an acknowledged effect must never be repeated. */
            once: boolean;
            /** @description Where the entry stands in the log. */
            position: number;
            /** @description What it returned, or what is left of it. */
            result: unknown;
            /** @description What tells equal steps apart. */
            span: string;
            /** @description When the step began, fixed-width UTC; none when the entry does not say. */
            started_at: string | null;
            /** @description The recorder's own count of steps. */
            step: number;
            /** @description Span of the tool or model call inside which it happened. */
            under: string | null;
        };
        /** @description Something that tells bad runs from good ones. */
        Trait: {
            /** @description How many bad runs have it, or lack it. */
            bad: number;
            /** @description What part of the runs that have it is bad. */
            bad_rate: number;
            /** @description What part of the other runs is bad. */
            bad_rate_otherwise: number;
            /** @description How many bad runs there are. */
            bad_total: number;
            /** @description What else these same runs have in common, earliest first. */
            companions: string[];
            /** @description How many good runs do. */
            good: number;
            /** @description How many good runs there are. */
            good_total: number;
            /** @description `step`, `argument`, `result`, `error`, `read`, `decision`, `fact`, `write`, `input`, `model`, `parameter`, `agent`, `code`, `given`, `origin`, `repeat`, `order` or `number`. */
            kind: string;
            /** @description The tool, entity, stage or model it is about. */
            name: string;
            /** @description How likely chance alone does this, corrected for all that was compared. */
            p_value: number;
            /** @description Which argument, member or field of it; of an order the later step. */
            path: string;
            /** @description Whether bad runs have it; false where they lack what good ones have. */
            present: boolean;
            /** @description What part of the bad runs has it, from 0 to 1. */
            share: number;
            /** @description The step at which this can be seen first, in the middle one of these runs; 0 for what was given to them. */
            step: number;
            /** @description What those runs did, as a clause: `called refund with method cash`. */
            text: string;
            /** @description The value that most good runs have in its place; none where there is no such thing. */
            usual: unknown;
            /** @description How many good runs have that. */
            usual_good: number;
            /** @description The value there; of a number the bound, of an origin where it came from, of a repeat how often. */
            value: unknown;
        };
        /** @description One rule that a decision tried. */
        Tried: {
            /** @description The branch it leads to. */
            chosen: unknown;
            /** @description What it compared, as far as it went. */
            conditions: components["schemas"]["Condition"][];
            /** @description What went wrong while it was tried. */
            error: unknown;
            /** @description What the rule is called. */
            label: string | null;
            /** @description Whether all its conditions held. */
            matched: boolean;
            /** @description Name of the function, where it is code. */
            predicate: string | null;
            /** @description Whether it neither matched nor failed to: no condition is false, and at least one is unknown. */
            unknown: boolean;
            /** @description The rule itself, where it is data; it can be evaluated again. */
            when: unknown;
        };
        /** @description The values of one entity or group, without provenance. */
        Values: {
            /** @description Whether it is deleted. */
            deleted: boolean;
            /** @description Values by field. */
            fields: {
                [key: string]: unknown;
            };
            /** @description The entities folded together, as references. */
            members: string[];
        };
        /** @description What became of one claim. */
        Verdict: {
            /** @description Who said so. */
            agent: string;
            /** @description Whether the log set `observed_at`, because they stated none: it is when the claim arrived. */
            assigned: boolean;
            /** @description The stated reason, as for a correction; None without one. */
            because: string | null;
            /** @description Whether it takes part, and the field was decided only by arrival. */
            by_arrival: boolean;
            /** @description The entity of the claim. */
            entity: string;
            /** @description The excerpt of the source, if it is text or JSON and still has it. */
            excerpt: string | null;
            /** @description The interpretation it came from. */
            interpretation: string | null;
            /** @description Where in the source they read it. */
            locator: {
                [key: string]: unknown;
            } | null;
            /** @description The observation that makes the claim. */
            observation: string;
            /** @description When they saw it. */
            observed_at: string;
            /** @description `assert` or `correct`. */
            op: string;
            /** @description The priority they claimed. */
            priority: number;
            /** @description Why, in a clause. */
            reason: string;
            /** @description Elements they took out of a collection. */
            removed: unknown[];
            /** @description The run of the observation. */
            run: string | null;
            /** @description The source they named. */
            source: string | null;
            /** @description The stated values; null if the claims only removed elements. */
            value: unknown;
            /** @description Whether it takes part in the value. */
            wins: boolean;
        };
        /** @description The scope and the findings of a verification. */
        Verified: {
            /** @description The checked parts: `file`, `log`, `checkpoints`, `receipts`, `state`, `search`, `vectors`. */
            checked: string[];
            /** @description Number of entries that the given checkpoints cover; no checkpoint covers later ones. */
            covered: number;
            /** @description The findings: the log's first, each by position. */
            damage: components["schemas"]["Finding"][];
            /** @description Entities whose state was folded again; none when the log is damaged. */
            entities: number;
            /** @description Entries of the log. */
            entries: number;
            /** @description One digest of the whole state, from the log alone; None when the log is damaged. */
            fingerprint: string | null;
            /** @description The first bad position: of the log if it is damaged, else of derived data. */
            first: number | null;
            /** @description Whether the log itself is damaged. */
            log_damaged: boolean;
            /** @description The names the log was written under, by first use. */
            logs: string[];
            /** @description Notices that are not damage: a clock far ahead of this machine's, an accepted epoch. */
            notices: string[];
            /** @description Observations among them. */
            observations: number;
            /** @description The last checked position; -1 for an empty ledger. */
            position: number;
            /** @description The root of the tree over all entries, from the entries alone, in hex. */
            root: string;
            /** @description Whether there are no findings. */
            sound: boolean;
            /** @description Number of entries that no checkpoint covers. */
            tail: number;
            /** @description What could not be looked at, and why. */
            unchecked: string[];
        };
        /** @description A type whose states or identifying values wait to be made again. */
        Waiting: {
            /** @description How many entities are done. */
            done: number;
            /** @description The last key that is done; empty before the first. */
            last: string;
            /** @description The end of the write that brought the last schema. */
            position: number;
            /** @description The type. */
            type: string;
        };
        /** @description A webhook, without the file of its secret, which would reveal a path of the machine. */
        Webhook: {
            /** @description Its id. */
            id: string;
            /** @description Kinds of entries that are sent; empty means all. */
            kinds: string[];
            /** @description The last delivered position. */
            position: number;
            /** @description The tenant whose log is delivered. */
            tenant: string;
            /** @description Its address. */
            url: string;
        };
        /** @description The outcomes of recorded decisions under a supposition. */
        WhatIf: {
            /** @description Leads to the decisions that are not listed; none when all are. */
            cursor: string | null;
            /** @description The decisions, by position; as many as were asked for. */
            decisions: components["schemas"]["Supposed"][];
            /** @description How many would come out differently; of a sweep, at one value or more. */
            flip: number;
            /** @description How entities were found that were named by values that identify them. */
            matched?: components["schemas"]["Match"][];
            /** @description Suppositions without effect, in sentences; on the first page. */
            notes: string[];
            /** @description The position the log was read at. */
            position: number;
            /** @description In a sweep: the outcomes of all decisions at each value; on the first page. */
            rows: components["schemas"]["SweepRow"][];
            /** @description How many decisions would come out the same, listed or not. */
            same: number;
            /** @description A summary of all outcomes, in one line. */
            sentence: string;
            /** @description The supposition. */
            supposition: components["schemas"]["Supposition"];
            /** @description Times that words such as `yesterday` resolved to, by argument. */
            times?: {
                [key: string]: string;
            };
            /** @description Of a sweep: how many further decisions it does not concern. */
            unaffected: number;
            /** @description Of how many that is not known; of a sweep, at one value or more, and that differ at no other. */
            unknown: number;
        };
        /** @description A field whose value an observation takes part in. */
        WonField: {
            /** @description How many runs lie between it and what was asked about. */
            distance: number;
            /** @description The entity, as a reference. */
            entity: string;
            /** @description The field. */
            field: string;
            /** @description The observation. */
            observation: string;
            /** @description What is believed. */
            value: unknown;
        };
        /** @description An observation that the run said. */
        Write: {
            /** @description Who said it. */
            agent: string;
            /** @description Whom it speaks of, as a reference. */
            entity: string;
            /** @description The values stated. */
            fields: {
                [key: string]: unknown;
            };
            /** @description Its id. */
            observation: string;
            /** @description When it was seen. */
            observed_at: string;
            /** @description `assert`, `correct`, `retract`, `delete` or `restore`. */
            op: string;
            /** @description Where it stands in the log; none where it was said in the log that the run was imported from. */
            position: number | null;
            /** @description Elements taken out of collections. */
            remove: {
                [key: string]: unknown;
            };
            /** @description The step it was said in, where it says so. */
            step: number | null;
        };
        /** @description The report of a write in a run. */
        WriteReceipt: {
            /** @description The agent that wrote. */
            agent: string;
            /** @description The idempotency key of the write. */
            key: string;
            /** @description The report, as stored with the key. */
            report: string;
            /** @description Digest of the request, in hex. */
            request: string;
        };
    };
    responses: {
        /** @description The request is invalid; nothing was written. */
        Problem400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "refused",
                 *       "detail": "limit: expected a whole number, got \"many\" (text). Send digits.\nNothing was read.",
                 *       "details": {
                 *         "faults": [
                 *           {
                 *             "path": "limit",
                 *             "problem": "expected a whole number, got \"many\" (text)",
                 *             "remedy": "Send digits."
                 *           }
                 *         ]
                 *       },
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 400,
                 *       "title": "Invalid request",
                 *       "type": "urn:woodrat:problem:refused"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The API key is missing or not valid. */
        Problem401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "forbidden",
                 *       "detail": "The API key is missing or not valid. Nothing was done. Send a key: Authorization: Bearer wrat_…, which is WOODRAT_TOKEN on the command line and key= in Python.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 401,
                 *       "title": "The caller may not do this",
                 *       "type": "urn:woodrat:problem:forbidden"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The key does not have the grant, or the page's origin is not allowed. */
        Problem403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "forbidden",
                 *       "detail": "This key may not write for task. Nothing was done. Ask for a key with the grant 'write', or name a type that this key covers.",
                 *       "details": {
                 *         "grant": "write"
                 *       },
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 403,
                 *       "title": "The caller may not do this",
                 *       "type": "urn:woodrat:problem:forbidden"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such thing in this tenant, at this moment. */
        Problem404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "not_found",
                 *       "detail": "contact/Bob: not known at position 1. Nothing was changed. Search for it, or read at a later moment.",
                 *       "details": {
                 *         "entity": "contact/Bob",
                 *         "position": 1
                 *       },
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 404,
                 *       "title": "There is no such thing in this tenant, at this moment",
                 *       "type": "urn:woodrat:problem:not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body took too long to arrive. */
        Problem408: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "refused",
                 *       "detail": "The body did not arrive within 30 seconds. Nothing was done. Send it again.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 408,
                 *       "title": "Invalid request",
                 *       "type": "urn:woodrat:problem:refused"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The ledger is an older copy than its signing keys remember, such as a restored backup; writes are refused. */
        Problem409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "outdated",
                 *       "detail": "log_aaaaaaaaaaaaaaaaaaaaaaaaaa: this ledger has 2 entries, and its last checkpoint covers 3. The last 1 are missing: it is an older copy, such as a restored backup, or it was cut. Nothing was written. If a backup was restored, accept it with `woodrat checkpoint --new-epoch REASON`; otherwise put the newer database back (a copy needs its -wal file too).",
                 *       "details": {
                 *         "damage": "behind",
                 *         "size": 2
                 *       },
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 409,
                 *       "title": "A condition no longer holds",
                 *       "type": "urn:woodrat:problem:outdated"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A condition in the call no longer holds. */
        Problem412: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "outdated",
                 *       "detail": "contact/Ana Rivera: expected it at version 0, it is at version 1. Nothing was written. Read it again, then decide.",
                 *       "details": {
                 *         "actual": 1,
                 *         "entity": "contact/Ana Rivera",
                 *         "expected": 0
                 *       },
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 412,
                 *       "title": "A condition no longer holds",
                 *       "type": "urn:woodrat:problem:outdated"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large. */
        Problem413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "refused",
                 *       "detail": "The body has 100000016 bytes, and 67108864 bytes is the limit. Nothing was done. Send it in several calls.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 413,
                 *       "title": "Invalid request",
                 *       "type": "urn:woodrat:problem:refused"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The query is too long. */
        Problem414: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "refused",
                 *       "detail": "The query has 16388 bytes, and 16384 is the limit. Nothing was done. Send less.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 414,
                 *       "title": "Invalid request",
                 *       "type": "urn:woodrat:problem:refused"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body has an unsupported media type or encoding. */
        Problem415: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "refused",
                 *       "detail": "content-type: got \"text/plain\" (text). Nothing was done. Send application/json or application/x-ndjson.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 415,
                 *       "title": "Invalid request",
                 *       "type": "urn:woodrat:problem:refused"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The host is not a name of this server. */
        Problem421: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "refused",
                 *       "detail": "host: \"evil.example\" (text) is not a name of this server. Nothing was done. Call it by one of its names.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 421,
                 *       "title": "Invalid request",
                 *       "type": "urn:woodrat:problem:refused"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The key calls too often, or too many of its calls are running or queued; `Retry-After` says when to retry. */
        Problem429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "unavailable",
                 *       "detail": "This key calls more than 5 times a second. Nothing was done. Call again in a second.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 429,
                 *       "title": "The engine cannot answer now",
                 *       "type": "urn:woodrat:problem:unavailable"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Stored bytes do not match their digest (`corrupt`), or the server failed; see its log. */
        Problem500: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "unavailable",
                 *       "detail": "The server failed on this request, 9efb025574215f56; see its log. It is not known whether anything was written. Send the same call with the same Idempotency-Key again.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 500,
                 *       "title": "The engine cannot answer now",
                 *       "type": "urn:woodrat:problem:unavailable"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The engine cannot answer now, or too many calls wait; the same call may be sent again. */
        Problem503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "unavailable",
                 *       "detail": "The server is shutting down. Nothing was done. Send the same call again later.",
                 *       "details": {},
                 *       "instance": "urn:woodrat:request:9efb025574215f56",
                 *       "status": 503,
                 *       "title": "The engine cannot answer now",
                 *       "type": "urn:woodrat:problem:unavailable"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        problem?: string;
                        /** @enum {unknown} */
                        status: "ok" | "degraded";
                    };
                };
            };
            421: components["responses"]["Problem421"];
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            401: components["responses"]["Problem401"];
            421: components["responses"]["Problem421"];
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        problem?: string;
                        /** @enum {unknown} */
                        status: "ok" | "degraded";
                    };
                };
            };
            421: components["responses"]["Problem421"];
            /** @description Degraded. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        problem?: string;
                        /** @enum {unknown} */
                        status: "ok" | "degraded";
                    };
                };
            };
        };
    };
    admit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "bodies": []
                 *     }
                 */
                "application/json": {
                    /** @description objects with kind and body */
                    bodies: Record<string, unknown>[];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    bisect: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "what": "contact/Ana Rivera",
                 *       "where": {
                 *         "city": "Barcelona"
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description the branch in question (default: the chosen one) */
                    chosen?: unknown;
                    /** @description the choice when no rule matches */
                    default?: unknown;
                    /** @description the entity is deleted */
                    deleted?: boolean;
                    /** @description the entity exists */
                    exists?: boolean;
                    /** @description check every change, to find the first such write */
                    first?: boolean;
                    /** @description where to start (default: before the first entry) */
                    from?: string | number;
                    /** @description rules that decide on the entity's fields */
                    rules?: Record<string, unknown>[];
                    /** @description where to stop (default: the moment read at, or now) */
                    to?: string | number;
                    /** @description an entity, or a recorded decision as RUN#stage */
                    what?: string | Record<string, unknown>;
                    /** @description conditions by field, as in rules */
                    when?: Record<string, unknown>;
                    /** @description city=Girona, 'creditScore lt 600', or either after REF#; all must hold */
                    where?: Record<string, unknown> | string[];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Bisected"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    blame: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description also quote the text of the source that a claim points to */
                excerpts?: boolean;
                /** @description only this field */
                field?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description entity: type/key, an ent_ id, or a value that only it has, such as its name
                 * @example contact/Ana Rivera
                 */
                ref: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Blame"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    caller: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyOwner"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    conflicts: {
        parameters: {
            query?: {
                /** @description list fields that were decided by arrival alone: no observation time was given */
                arrival?: boolean;
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description only entities of this type */
                entity_type?: string;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactEntityConflictPage"] | components["schemas"]["EntityConflictPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    correct: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
                /** @description ETag of the entity as you read it, several ETags, or *; another version is refused with 412 */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "fields": {
                 *         "city": "Girona"
                 *       },
                 *       "reason": "moved",
                 *       "ref": "contact/Ana Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description values by field */
                    fields?: Record<string, unknown>;
                    /** @description write only if the entity has this version, one of several, or is `known` */
                    if_version?: number | number[] | "known";
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description trust in the writer; the higher one wins */
                    priority?: number;
                    /** @description why; stored with the change */
                    reason?: string;
                    /** @description entity: type/key, or an ent_ id */
                    ref: string;
                    /** @description elements to remove, by field */
                    remove?: {
                        [key: string]: unknown[];
                    };
                    /** @description ids of observations that were wrong, such as earlier corrections */
                    replaces?: string[];
                    /** @description id of the source it was read from */
                    source?: string;
                    /** @description since when it is true (default: as in the corrected claim) */
                    valid_from?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    delete: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "asked to",
                 *       "ref": "contact/Ana Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description why; stored with the change */
                    reason?: string;
                    /** @description entity: type/key, or an ent_ id */
                    ref: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    diff: {
        parameters: {
            query: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description only entities of this type */
                entity_type?: string;
                /**
                 * @description the earlier moment
                 * @example 0
                 */
                from: string | number;
                /** @description entity: type/key, an ent_ id, or a value that only it has, such as its name */
                ref?: string;
                /** @description the later moment (default: the moment read at, or now) */
                to?: string | number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Changes"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    diff_against: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "known": []
                 *     }
                 */
                "application/json": {
                    /** @description only entities of this type */
                    entity_type?: string;
                    /** @description a state that was saved: snapshots, or one of them */
                    known: Record<string, unknown>[] | Record<string, unknown>;
                    /** @description entity: type/key, an ent_ id, or a value that only it has, such as its name */
                    ref?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Changes"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    duplicates: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description only entities of this type */
                entity_type?: string;
                /** @description return at most this many */
                limit?: number;
                /** @description entity: type/key, an ent_ id, or a value that only it has, such as its name */
                ref?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DuplicatePage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    elements: {
        parameters: {
            query: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /**
                 * @description the field
                 * @example tags
                 */
                field: string;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description entity: type/key, an ent_ id, or a value that only it has, such as its name
                 * @example contact/Ana Rivera
                 */
                ref: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Elements"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    query: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description sort in descending order */
                descending?: boolean;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description only entities of this type */
                entity_type?: string;
                /** @description return at most this many */
                limit?: number;
                /** @description sort by this field */
                sort?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
                /** @description only entities that fulfil this: city=Barcelona, 'age gte 18' (eq, in, lt, lte, gt, gte, prefix, exists) */
                where?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactSnapshotPage"] | components["schemas"]["SnapshotPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    show: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: {
                /** @description ETag of the answer you have; 304 if it has not changed */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description entity: type/key, an ent_ id, or a value that only it has, such as its name
                 * @example contact/Ana Rivera
                 */
                ref: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    /** @description changes with the answer, apart from its position */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            /** @description The answer has not changed. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    erase: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "dry_run": true,
                 *       "reason": "asked to be forgotten",
                 *       "what": "contact/Ana Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description erase everything this agent stated */
                    agent?: string;
                    /** @description only show the entries to erase */
                    dry_run?: boolean;
                    /** @description the reason; stored in the log, so do not name anybody in it */
                    reason: string;
                    /** @description erase an entity, its relations and all runs about it */
                    subject?: string;
                    /** @description an entity, a field as REF#field, or a source */
                    what?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Certificate"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    erase_again: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Certificate"][];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    fingerprint: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description include the observations behind the values */
                provenance?: boolean;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        fingerprint: string;
                        /** @description The log position it was read at. */
                        position: number;
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    finish_erasure: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /** @description rewrite the file even if the search finds nothing; writers wait */
                    compact?: boolean;
                    /** @description only show the cost of rewriting the file */
                    dry_run?: boolean;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Finished"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    history: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description only this field */
                field?: string;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description entity: type/key, an ent_ id, or a value that only it has, such as its name
                 * @example contact/Ana Rivera
                 */
                ref: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactStepPage"] | components["schemas"]["StepPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    ids: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description the beginning of an id; `last` is the latest run
                 * @example obs_d2f
                 */
                prefix: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: string[];
                        /** @description The log position it was read at. */
                        position: number;
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    impact: {
        parameters: {
            query?: {
                /** @description everything this agent stated */
                agent?: string;
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description follow at most this many runs one after another (default: all) */
                depth?: number;
                /** @description return at most this many */
                limit?: number;
                /** @description an observation, a source, an interpretation, an entity, a run, or a decision as RUN#stage */
                of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Impact"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    interpretations_list: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactInterpretationPage"] | components["schemas"]["InterpretationPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    interpretations_start: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "small-1",
                 *       "source": "src_aaaaaaaaaaaaaaaaaaaaaaaaaa"
                 *     }
                 */
                "application/json": {
                    /** @description other settings of the interpretation */
                    configuration?: Record<string, unknown>;
                    /** @description which code turns the answer into records */
                    extractor?: string;
                    /** @description which model reads it */
                    model?: string;
                    /** @description parameters of the model */
                    parameters?: Record<string, unknown>;
                    /** @description the prompt; only its digest is kept */
                    prompt?: string;
                    /** @description id of the source */
                    source: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StartedReading"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    interpretations_show: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the interpretation
                 * @example int_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                interpretation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Interpretation"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    interpretations_end: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the interpretation
                 * @example int_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                interpretation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "usage": {
                 *         "input": 120,
                 *         "output": 9
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description why it failed */
                    error?: string;
                    /**
                     * @description how it ended; default: done
                     * @enum {string}
                     */
                    status?: "done" | "error";
                    /** @description the cost, as the model reported it */
                    usage?: Record<string, unknown>;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndedReading"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    interpretations_store: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description id of the interpretation
                 * @example int_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                interpretation: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "records": [
                 *         {
                 *           "entity_type": "contract",
                 *           "name": "kline",
                 *           "payment_terms": "Net-30"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description when it was seen, RFC 3339 with an offset; default: now */
                    observed_at?: string;
                    /** @description trust in the writer; the larger wins */
                    priority?: number;
                    /** @description what was found */
                    records: components["schemas"]["Record"] | components["schemas"]["Record"][];
                    /** @description since when it is true; default: when it was seen */
                    valid_from?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    interpretations_diff: {
        parameters: {
            query: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /**
                 * @description id of an interpretation
                 * @example int_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                from: string;
                /**
                 * @description id of the interpretation to compare with
                 * @example int_bbbbbbbbbbbbbbbbbbbbbbbbbb
                 */
                to: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadingsDiff"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    keys_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Key"][];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    keys_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the key
                 * @example key_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "laptop lost"
                 *     }
                 */
                "application/json": {
                    /** @description why it is revoked */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    lineage: {
        parameters: {
            query: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description follow at most this many runs one after another (default: all) */
                depth?: number;
                /** @description return at most this many */
                limit?: number;
                /**
                 * @description a run, a decision as RUN#stage, an observation, or a field as REF#field
                 * @example contact/Ana Rivera#city
                 */
                of: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineageTree"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    log_entries: {
        parameters: {
            query?: {
                /** @description only entries after this position */
                after?: number;
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description return at most this many entries */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: {
                /** @description position of the last event received; with `Accept: text/event-stream` */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["LoggedEntry"][];
                        /** @description The log position it was read at. */
                        position: number;
                    };
                    "application/x-ndjson": string;
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    log_import: {
        parameters: {
            query?: {
                /** @description the position of that log before the first entry */
                after?: number;
                /** @description whether this server already holds all of that log up to this position */
                held?: boolean;
                /** @description the leaf hash of that log at this position, in hex */
                leaf?: string;
                /** @description the name of their log, under which the server remembers the last imported position */
                log?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "entries": []
                 *     }
                 */
                "application/json": {
                    /** @description the entries, in order */
                    entries: Record<string, unknown>[];
                };
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Imported"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    log_leaves: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description the other log; the answer says up to which position it was imported */
                log?: string;
                /** @description a position whose leaf hash to return; may be repeated */
                position?: string[];
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogLeaves"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    merge: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "one": "contact/Ana Rivera",
                 *       "other": "contact/A. Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description entity: type/key, or an ent_ id */
                    one: string;
                    /** @description the same entity under another name */
                    other: string;
                    /** @description why; stored with the change */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    observations: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description only values read in this interpretation */
                interpretation?: string;
                /** @description return at most this many */
                limit?: number;
                /** @description entity: type/key, an ent_ id, or a value that only it has, such as its name */
                ref?: string;
                /** @description only values read from this source */
                source?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactStoredPage"] | components["schemas"]["StoredPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    overview: {
        parameters: {
            query?: {
                /** @description number of days to count, up to today (default: 30) */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    position: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogPosition"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    proofs_prove: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description an observation, or a position of the log
                 * @example 0
                 */
                what: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    proofs_capsule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description a run, a decision as RUN#stage, an observation, or a field as REF#field
                 * @example contact/Ana Rivera#city
                 */
                what: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    proofs_checkpoints: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Checkpoint"][];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    proofs_checkpoint: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /** @description why to accept a history that contradicts the last checkpoint */
                    new_epoch?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Signed"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    proofs_prove_consistency: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "old": "woodrat"
                 *     }
                 */
                "application/json": {
                    /** @description the newer checkpoint (default: one made now) */
                    new?: string;
                    /** @description the older checkpoint, as its note */
                    old: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    prove_order: {
        parameters: {
            query?: {
                /** @description number of orders to try (default: 100) */
                shuffles?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderProof"];
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    rebuild: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rebuilt"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    recall: {
        parameters: {
            query: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description most tokens of the text */
                budget?: number;
                /** @description the conversation, with the scope conversation */
                conversation?: string;
                /** @description only facts and notes of these entity types, no runs and no documents */
                entity_type?: string | string[];
                /** @description return at most this many hits (default: 1) */
                k?: number;
                /** @description ignore statements of these agents */
                not_from?: string | string[];
                /** @description the principal, with the scope principal */
                principal?: string;
                /** @description decisions, commits, narrative or full */
                projection?: string;
                /**
                 * @description the question
                 * @example why was application #42 rejected?
                 */
                question: string;
                /** @description whose runs to search (default: tenant) */
                scope?: "tenant" | "principal" | "conversation";
                /** @description only statements made at or after this time */
                since?: string;
                /** @description lowest score to accept, 0 to 1 (default: 0.5) */
                threshold?: number;
                /** @description ignore memories older than this, in seconds */
                ttl?: number;
                /** @description only statements made before this time */
                until?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Recall"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    reduce: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "exists": true,
                 *       "what": "contact/Ana Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description the branch in question (default: the chosen one) */
                    chosen?: unknown;
                    /** @description the choice when no rule matches */
                    default?: unknown;
                    /** @description the entity is deleted */
                    deleted?: boolean;
                    /** @description the entity exists */
                    exists?: boolean;
                    /** @description try at most this many sets (default: 10000) */
                    folds_max?: number;
                    /** @description rules that decide on the entity's fields */
                    rules?: Record<string, unknown>[];
                    /** @description an entity, or a recorded decision as RUN#stage */
                    what?: string | Record<string, unknown>;
                    /** @description conditions by field, as in rules */
                    when?: Record<string, unknown>;
                    /** @description city=Girona, 'creditScore lt 600', or either after REF#; all must hold */
                    where?: Record<string, unknown> | string[];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reduction"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    reindex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reindexed"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    relate: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "from": "contact/Ana Rivera",
                 *       "to": "company/Kline",
                 *       "type": "works_at"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description fields of the relation */
                    fields?: Record<string, unknown>;
                    /** @description entity the relation starts at */
                    from: string;
                    /** @description distinguishes several relations of one type between the same two */
                    key?: string;
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description why; stored with the change */
                    reason?: string;
                    /** @description entity the relation leads to */
                    to: string;
                    /** @description type of the relation, such as works_at */
                    type: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    related: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description number of relations to follow (default: 1) */
                depth?: number;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description only relations of this type */
                type?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description entity: type/key, an ent_ id, or a value that only it has, such as its name
                 * @example contact/Ana Rivera
                 */
                ref: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelatedPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    remember: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "about": "contact/Ana Rivera",
                 *       "text": "Ana prefers calls before noon"
                 *     }
                 */
                "application/json": {
                    /** @description entity the note is about */
                    about?: string;
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /**
                     * @description existing (default): resolve an unknown subject to the one known entity with that value; never: keep it unknown
                     * @enum {string}
                     */
                    match?: "existing" | "never";
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description trust in the writer; the higher one wins */
                    priority?: number;
                    /** @description run that made the observation */
                    run?: string;
                    /** @description id of the source it was read from */
                    source?: string;
                    /** @description step of that run */
                    step?: number;
                    /** @description a sentence to remember */
                    text: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    restore: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ref": "contact/Ana Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description why; stored with the change */
                    reason?: string;
                    /** @description entity: type/key, or an ent_ id */
                    ref: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    retract: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "observations": [
                 *         "obs_d2fjsh5trd3wfuioa2iscubxg2"
                 *       ],
                 *       "reason": "misread"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description ids of the observations */
                    observations: string[];
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description why; stored with the change */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_list: {
        parameters: {
            query?: {
                /** @description only runs of this agent */
                agent?: string;
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description only runs of this conversation */
                conversation?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description only runs of this pipeline, and runs they started */
                pipeline?: string;
                /** @description only runs on behalf of this principal */
                principal?: string;
                /** @description only runs of this agent_session */
                session?: string;
                /** @description only runs that started at or after this time */
                since?: string;
                /** @description only runs with this status: done, error, cancelled, interrupted, running */
                status?: string;
                /** @description only runs about this entity */
                subject?: string;
                /** @description only runs that started before this time */
                until?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
                /** @description only runs with this verdict */
                verdict?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSummaryPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_start: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "inputs": {
                 *         "application": 42
                 *       },
                 *       "query": "Approve #42?"
                 *     }
                 */
                "application/json": {
                    /** @description anything else */
                    attributes?: Record<string, unknown>;
                    /** @description version of the agent's code */
                    code?: string;
                    /** @description the conversation it is part of */
                    conversation?: string;
                    /** @description the run and step it forks, and the edit */
                    forked_from?: Record<string, unknown>;
                    /** @description the id of the run; default: a new one */
                    id?: string;
                    /** @description its inputs, by name */
                    inputs?: Record<string, unknown>;
                    /** @description the shape of the inputs, of a recorder that restores them in a replay */
                    inputs_shape?: Record<string, unknown>[];
                    /** @description the run that started it */
                    parent?: string;
                    /** @description the pipeline it is a step of */
                    pipeline?: string;
                    /** @description the principal on whose behalf it runs */
                    principal?: string;
                    /** @description the question or task of the run */
                    query: string;
                    /** @description whether it answers from memory */
                    recall?: boolean;
                    /** @description names of values to hide before they are written */
                    redact?: string[];
                    /** @description runbooks in force */
                    runbook?: string | string[];
                    /** @description the agent_session it is part of */
                    session?: string;
                    /** @description the entity it is about */
                    subject?: string;
                    /** @description tool configurations in force */
                    tool_configs?: string[];
                    /** @description the W3C trace context it is part of */
                    traceparent?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StartedRun"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_show: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunRecord"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_end: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "answer": "Rejected."
                 *     }
                 */
                "application/json": {
                    /** @description what it answers */
                    answer?: unknown;
                    /** @description the error: text, or type and message */
                    error?: string | Record<string, unknown>;
                    /**
                     * @description how it ended; default: done
                     * @enum {string}
                     */
                    status?: "done" | "error" | "cancelled";
                    /** @description the cost, as counts by name */
                    usage?: Record<string, unknown>;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndedRun"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_entries: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "entries": [
                 *         {
                 *           "kind": "run.noted",
                 *           "text": "checked"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description objects with a kind, such as run.noted */
                    entries: Record<string, unknown>[];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecordedEntries"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_evaluate: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "against": "now"
                 *     }
                 */
                "application/json": {
                    /** @description a position, a time, now, @tag or a run */
                    against: string | number;
                    /** @description name of the evaluation */
                    name?: string;
                    /** @description why; stored with the change */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_judge: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "verdict": "good"
                 *     }
                 */
                "application/json": {
                    /** @description judge this step alone, named by its span */
                    about?: string;
                    /** @description the tag or run it was compared with */
                    against?: string;
                    /** @description the evaluation this verdict comes from */
                    evaluation?: string;
                    /** @description a better answer */
                    preferred?: unknown;
                    /** @description why; stored with the change */
                    reason?: string;
                    /** @description the judgement as a number */
                    score?: number;
                    /** @description good, bad, or a word of your own */
                    verdict: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_receipts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["WriteReceipt"][];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "position": 41
                 *     }
                 */
                "application/json": {
                    /**
                     * @description handling of `once` tools that started and never finished: refuse to resume, call them again, or find out the result yourself; default: fail
                     * @enum {string}
                     */
                    on_unknown?: "fail" | "retry" | "resolve";
                    /** @description the last position of the run that you know; refused if the run has newer entries */
                    position?: number;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResumedRun"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_snapshot: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_steps: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description only steps of this kind */
                kind?: "read" | "tool" | "model" | "decision" | "note" | "write";
                /** @description return at most this many */
                limit?: number;
                /** @description skip this many steps (default: 0) */
                skip?: number;
                /** @description begin with the step of this number */
                step?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSteps"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_step: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "step": {
                 *         "decide": {
                 *           "facts": {
                 *             "creditScore": 580
                 *           },
                 *           "rules": [
                 *             {
                 *               "chosen": "rejected",
                 *               "when": {
                 *                 "creditScore": {
                 *                   "lt": 600
                 *                 }
                 *               }
                 *             }
                 *           ],
                 *           "stage": "classify-risk"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description an object with one key, the kind of step */
                    step: Record<string, unknown>;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecordedStep"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_text: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description most tokens of the text */
                budget?: number;
                /** @description decisions, commits, narrative or full; default: decisions */
                projection?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the run
                 * @example run_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunText"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_diff: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "first": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa",
                 *       "second": "run_bbbbbbbbbbbbbbbbbbbbbbbbbb"
                 *     }
                 */
                "application/json": {
                    /** @description only rows that differ */
                    differing?: boolean;
                    /** @description a run, by id or as a document */
                    first: string | Record<string, unknown> | Record<string, unknown>[];
                    /** @description return at most this many */
                    limit?: number;
                    /** @description the run to compare it with */
                    second: string | Record<string, unknown> | Record<string, unknown>[];
                    /** @description skip this many rows (default: with `limit`, up to the page with the first difference) */
                    skip?: number;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Divergence"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_group: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "query": "Approve #42?"
                 *     }
                 */
                "application/json": {
                    /** @description only runs of this agent */
                    agent?: string;
                    /** @description only runs whose attribute has this value, as name=value */
                    attribute?: string[];
                    /** @description only runs of this conversation */
                    conversation?: string;
                    /** @description runs with this question */
                    query?: string;
                    /** @description smallest reward of a good run (default: 1, where every reward is 0 or 1) */
                    reward_min?: number;
                    /** @description runs, by id or as documents */
                    runs?: (string | Record<string, unknown>)[];
                    /** @description runs with the question and inputs of this run */
                    same_inputs_as?: string;
                    /** @description only runs that started at or after this time */
                    since?: string;
                    /** @description only runs about this entity */
                    subject?: string;
                    /** @description only runs that started before this time */
                    until?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Crowd"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    runs_import: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "document": {
                 *         "answer": "Rejected.",
                 *         "query": "Approve #42?"
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description a run, or a list of runs or entries */
                    document: unknown;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: string[];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    schemas_list: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactSchemaPage"] | components["schemas"]["SchemaPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    schemas_register: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "schema": {
                 *         "properties": {
                 *           "creditScore": {
                 *             "type": "integer"
                 *           }
                 *         },
                 *         "title": "loan"
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description type it describes (default: the schema's title) */
                    entity_type?: string;
                    /** @description JSON Schema 2020-12 */
                    schema: Record<string, unknown>;
                    /** @description its version (default: the next) */
                    version?: number;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    schemas_show: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description the entity type
                 * @example contact
                 */
                entity_type: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schema"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    schemas_infer: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description the entity type
                 * @example contact
                 */
                entity_type: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    schemas_add_pack: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description name of the pack: neotoma
                 * @example neotoma
                 */
                pack: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    search: {
        parameters: {
            query: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description only entities of this type */
                entity_type?: string;
                /** @description return at most this many */
                limit?: number;
                /**
                 * @description words to search for; each matches as a prefix
                 * @example Ana Rivera
                 */
                query: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactHitPage"] | components["schemas"]["HitPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    sources_list: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactDeliveryPage"] | components["schemas"]["DeliveryPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    sources_add: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "contract.txt",
                 *       "text": "Payment terms: Net-30."
                 *     }
                 */
                "application/json": {
                    /** @description the content, as base64 */
                    base64?: string;
                    /** @description its media type */
                    media_type?: string;
                    /** @description what to call it */
                    name?: string;
                    /** @description the content, as text */
                    text?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddedSource"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    sources_show: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the source
                 * @example src_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                source: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SourceContent"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    split: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ref": "contact/Ana Rivera"
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description entity to separate it from (default: all it was merged with) */
                    other?: string;
                    /** @description why; stored with the change */
                    reason?: string;
                    /** @description entity: type/key, or an ent_ id */
                    ref: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    stale: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description also decisions with the same outcome */
                same?: boolean;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactStalePage"] | components["schemas"]["StalePage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    stale_new: {
        parameters: {
            query?: {
                /** @description the position that the last answer named; default: the end of the log */
                after?: number;
                /** @description seconds to wait for a write */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Newly"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    store: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
                /** @description ETag of the entity as you read it, several ETags, or *; another version is refused with 412 */
                "If-Match"?: string;
                /** @description *: write only new records; refused with 412 if any is known */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "records": [
                 *         {
                 *           "city": "Barcelona",
                 *           "entity_type": "contact",
                 *           "name": "Ana Rivera"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description do everything except write */
                    dry_run?: boolean;
                    /** @description write only if the entity has this version, one of several, one by reference, or is `new` or `known` */
                    if_version?: number | number[] | ("new" | "known") | Record<string, unknown>;
                    /**
                     * @description attach a record of an unknown entity to the one known entity that it matches
                     * @enum {string}
                     */
                    match?: "existing";
                    /** @description when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now) */
                    observed_at?: string;
                    /** @description trust in the writer; the higher one wins */
                    priority?: number;
                    /** @description the observations: one record or a list */
                    records: components["schemas"]["Record"] | components["schemas"]["Record"][];
                    /** @description run that made the observation */
                    run?: string;
                    /** @description ids of the observations the writer had read */
                    saw?: string[];
                    /** @description id of the source it was read from */
                    source?: string;
                    /** @description step of that run */
                    step?: number;
                    /** @description since when it is true (default: when it was observed) */
                    valid_from?: string;
                };
                /**
                 * @example {"entity_type": "contact", "name": "Ana Rivera"}
                 *     {"entity_type": "contact", "name": "Bob Chen"}
                 */
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "by_arrival": [],
                     *       "changes": [
                     *         {
                     *           "entity": "contact/Ana Rivera",
                     *           "fields": [
                     *             {
                     *               "after": "Barcelona",
                     *               "before": null,
                     *               "field": "city",
                     *               "had": false,
                     *               "has": true,
                     *               "part": false
                     *             },
                     *             {
                     *               "after": "Ana Rivera",
                     *               "before": null,
                     *               "field": "name",
                     *               "had": false,
                     *               "has": true,
                     *               "part": false
                     *             }
                     *           ],
                     *           "is_deleted": false,
                     *           "was_deleted": false
                     *         }
                     *       ],
                     *       "conflicts": [],
                     *       "dry_run": false,
                     *       "entities": [
                     *         "contact/Ana Rivera"
                     *       ],
                     *       "hints": [],
                     *       "id": null,
                     *       "known": [],
                     *       "observations": [
                     *         "obs_d2fjsh5trd3wfuioa2iscubxg2"
                     *       ],
                     *       "position": 1,
                     *       "positions": [
                     *         0,
                     *         1
                     *       ],
                     *       "repeated": false
                     *     }
                     */
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    tag: {
        parameters: {
            query?: never;
            header?: {
                /** @description makes it safe to send the same call again */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "release-3"
                 *     }
                 */
                "application/json": {
                    /** @description a position, a time, now, @tag or a run */
                    moment?: string | number;
                    /** @description the name: letters, digits, '.', '_' and '-' */
                    name: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    timeline: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description only observations made at or after this time */
                since?: string;
                /** @description only observations made before this time */
                until?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactEventPage"] | components["schemas"]["EventPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    traces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "resourceSpans": []
                 *     }
                 */
                "application/json": Record<string, unknown>;
                "application/x-protobuf": string;
            };
        };
        responses: {
            /** @description A google.rpc.Status, in the encoding of the request. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description Received; partialSuccess counts the rejected spans. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            /** @description A google.rpc.Status, in the encoding of the request. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    values: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: components["schemas"]["Values"];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    verify: {
        parameters: {
            query?: {
                /** @description checkpoints kept elsewhere, as their notes */
                checkpoints?: string[];
                /** @description also check the search index, other indexes and vectors */
                deep?: boolean;
                /** @description verifier key that must have signed them */
                key?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Verified"];
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    webhooks_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Webhook"][];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    webhooks_add: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "kinds": [
                 *         "observation"
                 *       ],
                 *       "url": "https://hooks.example.org/woodrat"
                 *     }
                 */
                "application/json": {
                    /** @description only entries after this position; default: the end of the log */
                    after?: number;
                    /** @description only entries of these kinds; default: all */
                    kinds?: string[];
                    /** @description where to send them: a public address, over https */
                    url: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddedWebhook"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    webhooks_remove: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example hook_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                webhook: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RemovedWebhook"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    webhooks_retry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example hook_aaaaaaaaaaaaaaaaaaaaaaaaaa
                 */
                webhook: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /** @description only the delivery that starts at this position; default: all */
                    first?: number;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetriedWebhook"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    webhooks_dead_letters: {
        parameters: {
            query?: {
                /** @description only dead letters of this webhook */
                webhook?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            [key: string]: unknown;
                        }[];
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    what_if: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "set": {
                 *         "loan/42#creditScore": 640
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description only decisions in runs of this agent */
                    agent?: string;
                    /** @description continue where the previous page ended */
                    cursor?: string;
                    /** @description return at most this many */
                    limit?: number;
                    /** @description other rules, by stage */
                    rules?: Record<string, unknown>;
                    /** @description run ids, or decisions as RUN#stage (default: all) */
                    run?: string | string[];
                    /** @description also decisions with the same outcome */
                    same?: boolean;
                    /** @description other values, by the name of a fact or by REF#field */
                    set?: Record<string, unknown>;
                    /** @description only decisions made at or after this time */
                    since?: string;
                    /** @description only decisions of this stage */
                    stage?: string;
                    /** @description only decisions in runs about entities of this type */
                    subject_type?: string;
                    /** @description try one value after another: K=LOW..HIGH:STEP or K=a,b,c */
                    sweep?: string | Record<string, unknown>;
                    /** @description other operands in the rules, by stage.fact.operator */
                    thresholds?: Record<string, unknown>;
                    /** @description only decisions made before this time */
                    until?: string;
                    /** @description ignore these observations, sources or interpretations */
                    without?: string | string[];
                    /** @description ignore everything these agents stated */
                    without_agents?: string | string[];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhatIf"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    why: {
        parameters: {
            query?: {
                /** @description read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now) */
                as_of?: string;
                /** @description continue where the previous page ended */
                cursor?: string;
                /** @description answer with whole records: provenance, and every element of large collections */
                details?: boolean;
                /** @description return at most this many */
                limit?: number;
                /** @description count only values that were true by this time, whenever they became known (default: all) */
                valid_at?: string;
            };
            header?: never;
            path: {
                /**
                 * @description entity: type/key, an ent_ id, or a value that only it has, such as its name
                 * @example contact/Ana Rivera
                 */
                ref: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompactReasonPage"] | components["schemas"]["ReasonPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            414: components["responses"]["Problem414"];
            415: components["responses"]["Problem415"];
            421: components["responses"]["Problem421"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
}
