//! What a session may cost: an amount of money at list prices, or of credits. Both are set when the session is created, and can
//! be replaced or removed later.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::fields::Fields;
use crate::model::problem::Problem;

/// What a session may cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Dollars, as a decimal number.
    ListCost(String),
    /// Credits, as a decimal number.
    Credits(String),
}

impl Budget {
    /// Reads a budget.
    ///
    /// # Errors
    /// When it is not a limit, or the limit cannot be used.
    pub fn read(value: &Value) -> Result<Self, Problem> {
        let fields = Fields::of(value, "budget")?;
        let read = || {
            fields.word("type", &["limit"])?;
            match (fields.object("max_list_cost")?, fields.get("max_credit_cost")) {
                (Some(cost), None) => {
                    let amount = amount(cost.get("amount"), "amount")
                        .map_err(|error| error.inside("max_list_cost"))?;
                    cost.word("currency", &["USD"]).map_err(|error| error.inside("max_list_cost"))?;
                    Ok(Self::ListCost(amount))
                }
                (None, credits @ Some(_)) => Ok(Self::Credits(amount(credits, "max_credit_cost")?)),
                (Some(_), Some(_)) => {
                    Err(Problem::field("max_credit_cost", "cannot be combined with `max_list_cost`"))
                }
                (None, None) => Err(Problem::field("max_list_cost", "is required")),
            }
        };
        read().map_err(|problem: Problem| problem.inside("budget"))
    }

    /// The limit in dollars, where a credit costs `credit_usd`.
    #[must_use]
    pub fn dollars(&self, credit_usd: f64) -> f64 {
        let (text, factor) = match self {
            Self::ListCost(text) => (text, 1.0),
            Self::Credits(text) => (text, credit_usd),
        };
        text.parse().unwrap_or(0.0) * factor
    }

    /// A budget as clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        match self {
            Self::ListCost(amount) => {
                json!({ "type": "limit", "max_list_cost": { "amount": amount, "currency": "USD" } })
            }
            Self::Credits(credits) => json!({ "type": "limit", "max_credit_cost": credits }),
        }
    }
}

/// A positive decimal number, written as text or as a number.
fn amount(value: Option<&Value>, field: &str) -> Result<String, Problem> {
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) => return Err(Problem::field(field, "must be a decimal number as a string")),
        None => return Err(Problem::field(field, "is required")),
    };
    let is_plain = text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text.parse::<f64>().ok().filter(|number| is_plain && number.is_finite() && *number > 0.0);
    number
        .map(|_| text)
        .ok_or_else(|| Problem::field(field, "must be a decimal number above 0, such as \"1.50\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read_and_shown_as_sent() {
        let money = json!({ "type": "limit", "max_list_cost": { "amount": "1.50", "currency": "USD" } });
        let credits = json!({ "type": "limit", "max_credit_cost": "10" });
        for value in [&money, &credits] {
            assert_eq!(Budget::read(value).unwrap().view(), *value);
        }
        assert!((Budget::read(&credits).unwrap().dollars(0.01) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_limit_that_nothing_can_keep_to_is_refused() {
        for (value, field) in [
            (json!({}), "budget.max_list_cost"),
            (json!({ "type": "soft", "max_credit_cost": "1" }), "budget.type"),
            (json!({ "max_list_cost": { "amount": "0" } }), "budget.max_list_cost.amount"),
            (json!({ "max_list_cost": { "amount": "-1" } }), "budget.max_list_cost.amount"),
            (json!({ "max_list_cost": { "amount": "1e9" } }), "budget.max_list_cost.amount"),
            (
                json!({ "max_list_cost": { "amount": "1", "currency": "EUR" } }),
                "budget.max_list_cost.currency",
            ),
            (json!({ "max_credit_cost": "many" }), "budget.max_credit_cost"),
            (json!({ "max_list_cost": { "amount": "1" }, "max_credit_cost": "1" }), "budget.max_credit_cost"),
        ] {
            assert_eq!(Budget::read(&value).unwrap_err().field.as_deref(), Some(field), "{value}");
        }
    }
}
